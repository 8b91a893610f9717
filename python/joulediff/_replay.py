"""The replay pass: each operator that matters is run back to back on clones of its inputs.

On a GPU the executions are captured into a graph of about 4 ms, at most two of which are queued, so that
neither gaps on the host nor a long queue disturb the power; random and data-dependent operators, and what
cannot be captured, run eagerly. The first dispatch of an operator is where its inputs are at hand;
afterwards it runs once as the program wants it.
"""

import functools
import time

import torch

from joulediff import _operator, _storages
from joulediff._measure import Idle, Measurements, choose
from joulediff._mode import OperatorMode, synchronize
from joulediff._order import describe

_GRAPH_SECONDS = 4e-3
_QUEUED = 2
_SPIN_CYCLES = 2_000_000  # about 1 ms


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

    def __init__(self, call, arguments, capturable):
        """arguments: the tensors that the call is given; only what stays on the GPU is captured."""
        self._call, self._graph, self._copies = call, None, 1
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
        copies = int(min(2000, max(1, _GRAPH_SECONDS / self.seconds)))
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


class Replay(OperatorMode):
    """One step in which the wanted operators are measured at their first dispatch."""

    def __init__(self, recorder, fail, path, operators):
        super().__init__(fail)
        self.recorder, self._operators = recorder, operators
        self._measurements = Measurements(recorder, path, synchronize)
        self._other_shape = 0

    def begin(self):
        floors = [("joulediff.idle", Idle())]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            floors.insert(0, ("joulediff.static", Spin()))
        self._measurements.begin(choose(self._operators, self.recorder.operator_seconds), floors)
        super().begin()

    def leave(self):
        super().leave()
        self._measurements.release()

    def end(self):
        super().end()
        self._measurements.end()
        if self._other_shape:
            self.recorder.diagnostic(
                "note", "replayed_at_another_shape",
                f"{self._other_shape} operators came with other shapes in the replay step")

    def around(self, index, form, function, args, kwargs):
        if self._measurements.wanted and form.replayable:
            self.guarded(self._replay, index, form, function, args, kwargs)
        return function(*args, **kwargs)

    def _planned(self, index, form, function, args, kwargs):
        """The wanted signature that this call stands for, or None."""
        signature = describe(form, function, args, kwargs)
        if signature in self._measurements.wanted:
            return signature
        name, planned, _ = self._operators.get(index, ("", "", False))
        if name == form.name and self._measurements.wanted.get(planned) == index:
            self._other_shape += 1  # a cache that grows: the steps have not the same shapes
            return planned
        return None

    def _replay(self, index, form, function, args, kwargs):
        signature = self._planned(index, form, function, args, kwargs)
        if signature is None:
            return
        del self._measurements.wanted[signature]
        random = torch.get_rng_state()
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        random_cuda = torch.cuda.get_rng_state() if cuda else None
        try:
            self._measurements.guarded(self._on_clones, signature, form, function, args, kwargs)
        except RuntimeError as error:  # out of memory, or an operator that refuses clones
            self._measurements.not_replayed(signature, str(error))
        finally:
            torch.set_rng_state(random)
            if cuda:
                torch.cuda.set_rng_state(random_cuda)

    def _on_clones(self, signature, form, function, args, kwargs):
        tensors = (*_operator.tensors_in(args), *_operator.tensors_in(kwargs))
        copies = spans(tensors)
        new_args, new_kwargs = clone(list(args), copies), clone(dict(kwargs), copies)
        writes = [t for _, value, written, _, _ in _operator.bound(form, args, kwargs) if written
                  for t in _operator.tensors_in(value) if _storages.has_storage(t)]
        if isinstance(function, _operator.Launch):
            writes = list(tensors)
        touched = {t.untyped_storage()._cdata for t in writes} & copies.keys()
        fresh = {key: copies[key][1].clone() for key in touched}

        def refresh():  # an operator in place must not run away
            for key, content in fresh.items():
                copies[key][1].copy_(content)

        executions = Executions(lambda: function(*new_args, **new_kwargs), tensors, form.capturable)
        self._measurements.measure(signature, executions, refresh)
