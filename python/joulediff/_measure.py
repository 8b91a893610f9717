"""Windows of executions back to back, and the talk about them with the launcher.

The launcher alone reads sensors. For each chunk of executions we say when it began and ended, and it
answers `more N`, `pace N BURST IDLE` or `enough`: pauses between bursts bring the device to the clock that
it had in the trace (docs/recording.md, "Socket").
"""

import contextlib
import fcntl
import os
import random
import socket
import time

_SHARE = 0.95  # of the order pass's seconds
_CHUNK_SECONDS = 0.25
_APART_SECONDS = 0.1  # so long a pause parts what was measured at one pace from what is at the next
_LONGEST_PAUSE = 0.035  # and so short a one does not, even where the sleep is late
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


class Idle:
    """A context and no work, in units of 1 ms."""

    seconds = 1e-3

    def run(self, n):
        time.sleep(n * self.seconds)
        return n


class Measurements:
    """The replays of one process. `wanted`: {signature: index} of what is still to be measured; `cold`: the
    signatures that are to be measured with operands that are in no cache, too.
    """

    def __init__(self, recorder, path, synchronize):
        """path: of the launcher's socket, if there is a launcher; synchronize(): waits for the device."""
        self.recorder, self._path, self._synchronize = recorder, path, synchronize
        self.wanted, self.cold, self._launcher, self._number = {}, set(), None, 0
        self._lot = random.Random(0)
        self._undo = contextlib.ExitStack()

    def begin(self, wanted, floors, cold=False, trace=None):
        """floors: [(signature, executions)] of what is measured beside the operators; cold: whether there is a
        cache; trace: when its first step began, when its last one ended (ns), and how many it had.
        """
        self.wanted = wanted
        if not self.wanted:
            self.recorder.diagnostic("warning", "no_replay",
                                     "nothing is replayed: the order pass timed no operator")
        if not self._path:
            self.recorder.diagnostic("note", "no_replay", "nothing is replayed: no launcher is there to measure")
            self.wanted = {}
        if self.wanted and not self._alone():
            self.recorder.diagnostic("note", "replayed_elsewhere",
                                     "another process of the program makes the replays")
            self.wanted = {}
        if self.wanted:
            self.guarded(self._floors, floors, cold, trace)

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
        if self._launcher is not None:
            self._launcher.close()
            for signature in self.wanted:
                self.not_replayed(signature, "the replay step did not call it")

    def release(self):
        """Another process may replay."""
        self._undo.close()

    def not_replayed(self, signature, why):
        if len(signature) > _LONGEST_SIGNATURE:
            signature = signature[:_LONGEST_SIGNATURE] + "..."
        self.recorder.diagnostic("warning", "not_replayed",
                                 f"{signature} is estimated, as it was not replayed: {why}")

    def guarded(self, function, *args):
        try:
            function(*args)
        except Lost as error:
            self.recorder.diagnostic("warning", "launcher_lost", "joulediff record answered no more in the replay "
                                     f"({error}): operators without a replay are estimated")
            self.wanted = {}

    def _floors(self, floors, cold, trace):
        self._launcher = Launcher(self._path)
        room, cold_room = self._launcher.plan(len(self.wanted) + len(floors), len(self.wanted) if cold else 0)
        self.wanted = dict(list(self.wanted.items())[:max(0, room - len(floors))])  # the costliest
        self.cold = set(list(self.wanted)[:cold_room])
        for signature, executions in floors:
            self.measure(signature, executions)
        if trace:  # from here on the device is to be as it was then
            self._launcher.say("trace {} {} {}".format(*trace))

    def measure(self, signature, executions, refresh=lambda: None):
        """executions: `seconds` that one takes, and run(n), which waits for the device."""
        number, self._number = self._number, self._number + 1
        n, pace = max(1, round(_CHUNK_SECONDS / executions.seconds)), None
        while n:
            refresh()
            self._synchronize()
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
