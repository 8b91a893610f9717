"""Executions of one operator, again and again: on clones of its inputs, warm or cold in the cache.

On a GPU they are captured into a graph of about 4 ms, at most two of which are queued, so that neither
gaps on the host nor a long queue disturb the power; random and data-dependent operators, and what
cannot be captured, run eagerly. Cold: the executions take turns over so many clones, and keep so many
results, that what one of them needs has left the cache since it was last touched; nothing else runs
between them that would have to be taken out again.
"""

import functools
import math
import time

import torch

from joulediff import _operator, _storages
from joulediff._mode import synchronize

_GRAPH_SECONDS = 4e-3
_MOST_COPIES = 2000  # in a graph
_QUEUED = 2
_SPIN_CYCLES = 2_000_000  # about 1 ms
_EVICTED = 2  # so many times what the cache holds lies between two uses


def clone(value, storages):
    """The argument with its tensors copied: same strides, and what shared a storage shares one.

    storages: an empty dict on the first call for an operator; kept for its other arguments.
    """
    if isinstance(value, torch.Tensor):
        return _clone_tensor(value, storages)
    if isinstance(value, list | tuple):
        items = [clone(item, storages) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: clone(item, storages) for key, item in value.items()}
    return value


def _clone_tensor(tensor, storages):
    if not _storages.has_storage(tensor) or tensor.is_conj() or tensor.is_neg():
        return tensor.clone()
    key = tensor.untyped_storage()._cdata
    first, bytes_ = storages[key]
    size = tensor.element_size()
    new = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    offset = tensor.storage_offset() - first // size
    return new.set_(bytes_.untyped_storage(), offset, tensor.size(), tensor.stride())


def spans(tensors):
    """Copies of the bytes that tensors reach, by storage -> (first byte kept, uint8 tensor)."""
    reach, sample = {}, {}
    for tensor in tensors:
        if _storages.has_storage(tensor):
            region = _storages.region_of(tensor)
            key = tensor.untyped_storage()._cdata
            low, high = reach.get(key, (region.offset, region.end))
            reach[key] = min(low, region.offset), max(high, region.end)
            sample[key] = tensor
    copies = {}
    for key, (low, high) in reach.items():
        low -= low % 512  # the alignment of the pointers stays
        source = torch.empty(0, dtype=torch.uint8, device=sample[key].device)
        source.set_(sample[key].untyped_storage(), low, (high - low,), (1,))
        copies[key] = low, source.clone()
    return copies


@functools.lru_cache(maxsize=1)
def _side_stream():
    return torch.cuda.Stream()


class Executions:
    """Runs a call `n` times back to back; run() returns how many it made and waits for the device."""

    def __init__(self, call, arguments, capturable, turns=1):
        """arguments: the tensors that the call is given; only what stays on the GPU is captured; turns: after
        so many calls the first one's operands come again.
        """
        self._call, self._graph, self._copies, self._turns = call, None, 1, turns
        for _ in range(3):
            result = call()
        self.seconds = self._time(3)
        everything = (*arguments, *_operator.tensors_in(result))
        if capturable and everything and all(t.is_cuda for t in everything):
            self._capture()

    def _time(self, n):
        synchronize()
        begin = time.monotonic()
        for _ in range(n):
            self._call()
        synchronize()
        return max(1e-7, (time.monotonic() - begin) / n)

    def _capture(self):
        copies = min(_MOST_COPIES, max(1, int(_GRAPH_SECONDS / self.seconds)))
        copies = self._turns * math.ceil(copies / self._turns)  # the last one before the first again
        graph, current, aside = torch.cuda.CUDAGraph(), torch.cuda.current_stream(), _side_stream()
        aside.wait_stream(current)
        with torch.cuda.stream(aside):  # libraries make their workspaces for a stream
            self._call()
        try:
            with torch.cuda.graph(graph, stream=aside, capture_error_mode="thread_local"):
                for _ in range(copies):
                    self._call()
        except RuntimeError:
            torch.cuda.set_stream(current)  # a capture that fails leaves its own
            synchronize()
            return
        self._graph, self._copies = graph, copies
        self.seconds = min(self.seconds, self._time_graph())

    def _time_graph(self):
        self._graph.replay()
        synchronize()
        begin = time.monotonic()
        done = self.run(2 * self._copies)
        return max(1e-7, (time.monotonic() - begin) / done)

    def run(self, n):
        if self._graph is None:
            for _ in range(n):
                self._call()
            synchronize()
            return n
        launches = max(1, round(n / self._copies))
        queued = []
        for _ in range(launches):
            if len(queued) == _QUEUED:
                queued.pop(0).synchronize()
            self._graph.replay()
            queued.append(torch.cuda.Event())
            queued[-1].record()
        synchronize()
        return launches * self._copies


class Spin:
    """The device awake and doing next to nothing: kernels of about 1 ms that wait for the clock."""

    seconds = 1e-3

    def run(self, n):
        queued = []
        for _ in range(n):
            if len(queued) == 8:
                queued.pop(0).synchronize()
            torch.cuda._sleep(_SPIN_CYCLES)
            queued.append(torch.cuda.Event())
            queued[-1].record()
        synchronize()
        return n


def cache_bytes():
    """Of the current device's L2; 0: there is none that is known."""
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return 0
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return getattr(properties, "L2_cache_size", 0)


def turns(operand_bytes, cache):
    """How many clones of the operands, results included, must be used in turns so that each is cold; 0: the
    executions are cold as they are, or the operands so small that it does not matter.
    """
    if operand_bytes <= 0 or operand_bytes > cache:
        return 0
    needed = math.ceil(_EVICTED * cache / operand_bytes) + 1
    return needed if needed <= _MOST_COPIES else 0


def result_bytes(result, storages):
    """Of the memory that the result has to itself: in none of these storages (by their _cdata)."""
    own = [t for t in _operator.tensors_in(result)
           if _storages.has_storage(t) and t.untyped_storage()._cdata not in storages]
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in own}.values())


class InTurns:
    """Calls that use one set of operands after the other, and keep as many results."""

    def __init__(self, calls):
        self._calls, self._results, self._next = calls, [None] * len(calls), 0

    def __call__(self):
        which, self._next = self._next, (self._next + 1) % len(self._calls)
        self._results[which] = None  # its memory is the next one's
        self._results[which] = self._calls[which]()
        return self._results[which]
