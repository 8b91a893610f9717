"""Windows of executions back to back, and the talk about them with the launcher.

The launcher alone reads sensors. For each chunk of executions we say when it began and ended, and it
answers `more N` or `enough` (docs/recording.md, "Socket").
"""

import contextlib
import fcntl
import os
import socket
import time

_SHARE = 0.95  # of the order pass's seconds
_CHUNK_SECONDS = 0.25
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


class Idle:
    """A context and no work, in units of 1 ms."""

    seconds = 1e-3

    def run(self, n):
        time.sleep(n * self.seconds)
        return n


class Measurements:
    """The replays of one process. `wanted`: {signature: index} of what is still to be measured."""

    def __init__(self, recorder, path, synchronize):
        """path: of the launcher's socket, if there is a launcher; synchronize(): waits for the device."""
        self.recorder, self._path, self._synchronize = recorder, path, synchronize
        self.wanted, self._launcher, self._number = {}, None, 0
        self._undo = contextlib.ExitStack()

    def begin(self, wanted, floors):
        """floors: [(signature, executions)] of what is measured beside the operators."""
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
            self.guarded(self._floors, floors)

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

    def _floors(self, floors):
        self._launcher = Launcher(self._path)
        room = self._launcher.plan(len(self.wanted) + len(floors)) - len(floors)
        self.wanted = dict(list(self.wanted.items())[:max(0, room)])  # the costliest
        for signature, executions in floors:
            self.measure(signature, executions)

    def measure(self, signature, executions, refresh=lambda: None):
        """executions: `seconds` that one takes, and run(n), which waits for the device."""
        number, self._number = self._number, self._number + 1
        n = max(1, round(_CHUNK_SECONDS / executions.seconds))
        while n:
            refresh()
            self._synchronize()
            begin = self.recorder.now()
            done = executions.run(n)
            end = self.recorder.now()
            self.recorder.replay(signature.encode(), begin, end, done)
            self._launcher.say(f"replay {number} {begin} {end} {done}")
            n = self._launcher.more()
