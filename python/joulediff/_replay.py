"""The replay pass: each operator that matters is run back to back on clones of its inputs.

The launcher alone reads sensors. For each chunk of executions we say when it began and ended, and it
answers `more N`, `pace N BURST IDLE` or `enough`: pauses between bursts bring the device to the clock that
it had in the trace. The first dispatch of an operator is where its inputs are at hand; afterwards it
runs once as the program wants it.
"""

import contextlib
import fcntl
import os
import random
import socket
import time

import torch

from joulediff import _operator, _storages
from joulediff._executions import (Executions, Idle, InTurns, Spin, cache_bytes, clone, result_bytes, spans,
                                   turns)
from joulediff._mode import OperatorMode, synchronize
from joulediff._order import describe

_SHARE = 0.95  # of the order pass's seconds
_CHUNK_SECONDS = 0.25
_APART_SECONDS = 0.1  # so long a pause parts what was measured at one pace from what is at the next
_LONGEST_PAUSE = 0.035  # and so short a one does not, even where the sleep is late
_COLD = "joulediff.cold "
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

    def _hear(self, **expected):
        """The launcher's answer: a word with as many numbers as are expected of it, or `enough`: none."""
        try:
            word, *numbers = self._lines.readline().split() or [""]
        except (OSError, ValueError) as error:
            raise Lost(str(error)) from error
        if len(numbers) == expected.get(word) and all(n.isdigit() for n in numbers):
            return [int(n) for n in numbers]
        if word != "enough" or numbers:
            raise Lost(f"answered {[word, *numbers]}")
        return []

    def more(self):
        """How many executions the launcher wants next, and (burst, idle) in ns where it wants pauses between
        bursts of them, else None; 0: enough.
        """
        count, *pace = self._hear(more=1, pace=3) or [0]
        if pace and 0 in pace:
            raise Lost(f"answered with bursts and pauses of {pace} ns")
        return count, tuple(pace) or None

    def plan(self, count, cold):
        """How many of `count` replays the launcher has time for, and how many of `cold` ones besides."""
        self.say(f"plan {count} {cold}")
        return self._hear(replay=2) or [0, 0]

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


class Replay(OperatorMode):
    """One step in which the wanted operators are measured at their first dispatch."""

    def __init__(self, recorder, fail, path, operators, trace=None):
        """trace: when its first step began, when its last one ended (ns), and how many it had."""
        super().__init__(fail)
        self.recorder, self._path = recorder, path
        self._operators, self._trace = operators, trace
        self._wanted, self._cold, self._launcher, self._number = {}, set(), None, 0
        self._other_shape = 0
        self._lot = random.Random(0)

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
        room, cold = self._launcher.plan(len(self._wanted) + len(floors), len(self._wanted) if cache_bytes() else 0)
        self._wanted = dict(list(self._wanted.items())[:max(0, room - len(floors))])  # the costliest
        self._cold = set(list(self._wanted)[:cold])
        for signature, executions in floors:
            self._measure(signature, executions)
        if self._trace:  # from here on the device is to be as it was then
            self._launcher.say("trace {} {} {}".format(*self._trace))

    def _measure(self, signature, executions, refresh=lambda: None):
        number, self._number = self._number, self._number + 1
        n, pace = max(1, round(_CHUNK_SECONDS / executions.seconds)), None
        while n:
            refresh()
            synchronize()
            begin, done, end = self._chunk(signature.encode(), executions, n, pace)
            self._launcher.say(f"replay {number} {begin} {end} {done}")
            n, before = (told := self._launcher.more())[0], pace
            pace = told[1]
            if n and pace != before:
                time.sleep(_APART_SECONDS)

    def _chunk(self, signature, executions, n, pace):
        """Makes n executions; when they began, how many they were, and when they, or the pause after the last
        burst, ended. Each burst is a replay of its own, so that the pauses can be told from it.
        """
        burst, idle = pace or (0, 0)
        each = max(1, round(burst / 1e9 / executions.seconds)) if pace else n
        first, made = self.recorder.now(), 0
        while True:
            begin = self.recorder.now()
            done = executions.run(min(each, n))
            end = self.recorder.now()
            self.recorder.replay(signature, begin, end, done)
            made += done
            if not pace:
                return begin, made, end
            each = max(1, round(done * burst / max(1, end - begin)))  # what three calls took was a first guess
            # By lot, so as not to beat with the sensors.
            pause = (end - begin) / 1e9 * idle / burst * self._lot.uniform(0.7, 1.3)
            time.sleep(min(pause, _LONGEST_PAUSE))
            if made >= n:
                return first, made, self.recorder.now()

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
        if signature in self._cold:
            self._on_cold_clones(signature, form, function, args, kwargs, touched)

    def _on_cold_clones(self, signature, form, function, args, kwargs, touched):
        """Again, so that no operand is in the cache; where it would not be warm anyway."""
        tensors = (*_operator.tensors_in(args), *_operator.tensors_in(kwargs))

        def prepared():
            copies = spans(tensors)
            new_args, new_kwargs = clone(list(args), copies), clone(dict(kwargs), copies)
            return copies, lambda: function(*new_args, **new_kwargs)

        copies, call = prepared()
        own = {kept.untyped_storage()._cdata: kept for _, kept in copies.values()}
        size = sum(kept.numel() for kept in own.values()) + result_bytes(call(), own)
        count = turns(size, cache_bytes())
        if count == 0:
            return
        sets = [prepared() for _ in range(count)]

        fresh = {key: kept.clone() for key, (_, kept) in spans(tensors).items() if key in touched}

        def refresh():
            for copies, _ in sets:
                for key, content in fresh.items():
                    copies[key][1].copy_(content)

        executions = Executions(InTurns([call for _, call in sets]), tensors, form.capturable, count)
        self._measure(_COLD + signature, executions, refresh)
