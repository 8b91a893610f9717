"""The replay pass: each operator that matters is run back to back on clones of its inputs.

The launcher alone reads sensors. For each chunk of executions we say when it began and ended, and it
answers `more N` or `enough`. On a GPU the executions are captured into a graph of about 4 ms, at most
two of which are queued, so that neither gaps on the host nor a long queue disturb the power; random
and data-dependent operators, and what cannot be captured, run eagerly. The first dispatch of an
operator is where its inputs are at hand; afterwards it runs once as the program wants it.
"""

import contextlib
import fcntl
import functools
import os
import socket
import time

import torch

from joulediff import _operator, _storages
from joulediff._mode import OperatorMode, synchronize
from joulediff._order import describe

_SHARE = 0.95  # of the order pass's seconds
_CHUNK_SECONDS = 0.25
_GRAPH_SECONDS = 4e-3
_QUEUED = 2
_SPIN_CYCLES = 2_000_000  # about 1 ms
_ANSWER_SECONDS = 120
_LONGEST_SIGNATURE = 300  # in a diagnostic


class Lost(Exception):
    """The launcher is gone."""


class Launcher:
    """The launcher's side of the socket; every method raises Lost when it is gone."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_ANSWER_SECONDS)
        try:
            self._socket.connect(path)
        except OSError as error:
            raise Lost(str(error)) from error
        self._lines = self._socket.makefile("r", encoding="ascii", newline="\n")

    def say(self, line):
        try:
            self._socket.sendall(line.encode("ascii") + b"\n")
        except OSError as error:
            raise Lost(str(error)) from error

    def _hear(self, word):
        """The number after `word` in the launcher's answer; None: enough."""
        try:
            words = self._lines.readline().split()
        except (OSError, ValueError) as error:
            raise Lost(str(error)) from error
        if len(words) == 2 and words[0] == word and words[1].isdigit():
            return int(words[1])
        if words != ["enough"]:
            raise Lost(f"answered {words}")
        return None

    def more(self):
        """How many executions the launcher wants next; 0: enough."""
        count = self._hear("more")
        return 0 if count is None else max(1, count)

    def plan(self, count):
        """How many of `count` replays the launcher has time for."""
        self.say(f"plan {count}")
        return self._hear("replay") or 0

    def close(self):
        self._socket.close()


def choose(operators, seconds):
    """The signatures that make up 95 % of the time, costliest first -> {signature: one index}.

    operators: index -> (name, signature, moves data); seconds(index): negative where unknown.
    """
    total, first = {}, {}
    for index, (_, signature, moves) in sorted(operators.items()):
        if moves:
            first.setdefault(signature, index)
            total[signature] = total.get(signature, 0.0) + max(0.0, seconds(index))
    wanted, rest = {}, _SHARE * sum(total.values())
    for signature in sorted(total, key=total.get, reverse=True):
        if rest <= 0 or total[signature] <= 0:
            break
        wanted[signature] = first[signature]
        rest -= total[signature]
    return wanted


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


class Idle:
    """A context and no work, in units of 1 ms."""

    seconds = 1e-3

    def run(self, n):
        time.sleep(n * self.seconds)
        return n


class Replay(OperatorMode):
    """One step in which the wanted operators are measured at their first dispatch."""

    def __init__(self, recorder, fail, path, operators):
        super().__init__(fail)
        self.recorder, self._path = recorder, path
        self._operators = operators
        self._wanted, self._launcher, self._number = {}, None, 0
        self._other_shape = 0

    def begin(self):
        self._wanted = choose(self._operators, self.recorder.operator_seconds)
        if not self._wanted:
            self.recorder.diagnostic("warning", "no_replay",
                                     "nothing is replayed: the order pass timed no operator")
        if not self._path:
            self.recorder.diagnostic("note", "no_replay", "nothing is replayed: no launcher is there to measure")
            self._wanted = {}
        if self._wanted and not self._alone():
            self.recorder.diagnostic("note", "replayed_elsewhere",
                                     "another process of the program makes the replays")
            self._wanted = {}
        if self._wanted:
            self._guard_launcher(self._floor)
        super().begin()

    def _alone(self):
        """Two that replay at once would be charged with each other's energy: the first one does."""
        folder = os.environ.get("JOULEDIFF_SPOOL")
        if not folder:
            return True
        lock = self._undo.enter_context(open(os.path.join(folder, "replay.lock"), "ab"))
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def end(self):
        super().end()
        if self._launcher is not None:
            self._launcher.close()
            for signature in self._wanted:
                self._tell_not_replayed(signature, "the replay step did not call it")
        if self._other_shape:
            self.recorder.diagnostic(
                "note", "replayed_at_another_shape",
                f"{self._other_shape} operators came with other shapes in the replay step")

    def _tell_not_replayed(self, signature, why):
        if len(signature) > _LONGEST_SIGNATURE:
            signature = signature[:_LONGEST_SIGNATURE] + "..."
        self.recorder.diagnostic("warning", "not_replayed",
                                 f"{signature} is estimated, as it was not replayed: {why}")

    def _guard_launcher(self, function, *args):
        try:
            function(*args)
        except Lost as error:
            self.recorder.diagnostic("warning", "launcher_lost", "joulediff record answered no more in the replay "
                                     f"({error}): operators without a replay are estimated")
            self._wanted = {}

    def _floor(self):
        self._launcher = Launcher(self._path)
        floors = [("joulediff.idle", Idle())]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            floors.insert(0, ("joulediff.static", Spin()))
        room = self._launcher.plan(len(self._wanted) + len(floors)) - len(floors)
        self._wanted = dict(list(self._wanted.items())[:max(0, room)])  # the costliest
        for signature, executions in floors:
            self._measure(signature, executions)

    def _measure(self, signature, executions, refresh=lambda: None):
        number, self._number = self._number, self._number + 1
        n = max(1, round(_CHUNK_SECONDS / executions.seconds))
        while n:
            refresh()
            synchronize()
            begin = self.recorder.now()
            done = executions.run(n)
            end = self.recorder.now()
            self.recorder.replay(signature.encode(), begin, end, done)
            self._launcher.say(f"replay {number} {begin} {end} {done}")
            n = self._launcher.more()

    def around(self, index, form, function, args, kwargs):
        if self._wanted and form.replayable:
            self.guarded(self._replay, index, form, function, args, kwargs)
        return function(*args, **kwargs)

    def _planned(self, index, form, function, args, kwargs):
        """The wanted signature that this call stands for, or None."""
        signature = describe(form, function, args, kwargs)
        if signature in self._wanted:
            return signature
        name, planned, _ = self._operators.get(index, ("", "", False))
        if name == form.name and self._wanted.get(planned) == index:
            self._other_shape += 1  # a cache that grows: the steps have not the same shapes
            return planned
        return None

    def _replay(self, index, form, function, args, kwargs):
        signature = self._planned(index, form, function, args, kwargs)
        if signature is None:
            return
        del self._wanted[signature]
        random = torch.get_rng_state()
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        random_cuda = torch.cuda.get_rng_state() if cuda else None
        try:
            self._guard_launcher(self._on_clones, signature, form, function, args, kwargs)
        except RuntimeError as error:  # out of memory, or an operator that refuses clones
            self._tell_not_replayed(signature, str(error))
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
        self._measure(signature, executions, refresh)
