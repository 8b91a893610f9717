"""The loads of `joulediff calibrate`: what tells a board's sensors, its floors and its costs.

Run by the launcher, which reads the sensors all the while. In this order: a pause before there is a
context; the floors; bursts of random lengths, whose edges tell windows and lags; equal pulses at
several periods, some of them in step with what sensors have; work of known size on operands of several
kinds, with floors between, as the board warms; the floors again. Each piece says in its signature what
it does: `calibrate.matmul(dtype=bfloat16, unit=matrix, values=random, flop=1.1e+12)`.

The time that is given is shared out among the pieces. Where it does not do for all of them, what is left is
said, and a later run that is told what is made (`--made`) goes on with the rest.
"""

import argparse
import dataclasses
import random
import sys
import time

_CHUNK_SECONDS = 0.25
_PULSE = 0.02
# Seconds; 100 and 20 ms are what sensors of today have, the others are beside them.
_PULSE_PERIODS = (0.1, 0.0973, 0.1017, 0.2, 0.2031)
_SHORT_PULSE = 0.0035
_SHORT_PERIODS = (0.02, 0.0209, 0.0191)
_VALUES = ("random", "zeros", "ones")  # what matters most comes first
_TRACE = "calibrate.trace"  # bursts and pulses, as _made_ has it
_START_SECONDS = 15.0  # of torch and the device
_MAKE_SECONDS = 0.4  # of a load


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of the loads; those of a GPU fill it, and those of the processor try the code out."""

    matrix: int = 8192
    vector: int = 1 << 21
    rounds: int = 4096  # so many that what the operands take to load is 1 %
    hbm: int = 1 << 30
    l2: int = 8 << 20
    small: int = 2048  # matrices of the bursts


SIZES = {"cuda": Sizes(), "cpu": Sizes(64, 1 << 10, 4, 1 << 16, 1 << 12, 32)}


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Seconds of the pieces; the shortest are what sensors of today need."""

    rest: float
    floor: float
    edges: float
    settle: float
    train: float
    load: float

    def of_trace(self):
        return self.edges + sum(self.settle + self.train for _ in trains())

    def whole(self, traces, loads):
        """Of all pieces: four floors of the spinning kernel and two of none."""
        return (_START_SECONDS + self.rest + 6 * self.floor + (self.of_trace() if traces else 0) +
                loads * (self.load + _MAKE_SECONDS))


LONG = Lengths(4.0, 4.0, 25.0, 1.5, 6.0, 3.0)
SHORT = Lengths(2.0, 2.0, 12.0, 1.0, 3.0, 1.7)


def lengths(seconds, traces, loads):
    """Between the shortest that tell something and those that tell enough, by the time that is given."""
    shortest, longest = SHORT.whole(traces, loads), LONG.whole(traces, loads)
    share = min(1.0, max(0.0, (seconds - shortest) / (longest - shortest)))
    return Lengths(*(low + share * (high - low) for low, high in
                     zip(dataclasses.astuple(SHORT), dataclasses.astuple(LONG), strict=True)))


@dataclasses.dataclass(frozen=True)
class Load:
    """Work of known size; make(device) -> a call that does it once."""

    signature: str
    make: object


def signature(what, **arguments):
    fields = ", ".join(f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}"
                       for key, value in arguments.items())
    return f"calibrate.{what}({fields})"


def bursts(seconds, seed=0):
    """(on, off) of 30 to 400 ms each, in seconds, until they fill the time."""
    chance = random.Random(seed)
    filled = 0.0
    while filled < seconds:
        pair = chance.uniform(0.03, 0.4), chance.uniform(0.03, 0.4)
        filled += sum(pair)
        yield pair


def trains():
    """(pulse, period) in seconds, of each train of equal pulses."""
    yield from ((_PULSE, period) for period in _PULSE_PERIODS)
    yield from ((_SHORT_PULSE, period) for period in _SHORT_PERIODS)


def operand(torch, shape, dtype, values, device):
    if values == "random":
        return torch.randn(shape, device=device).to(dtype)
    return torch.full(shape, 0.0 if values == "zeros" else 1.0, dtype=dtype, device=device)


def matmuls(torch, size):
    """On matrix units; float32 runs on vector units where TF32 is off."""
    kinds = [("bfloat16", "matrix"), ("float32", "vector"), ("tf32", "matrix"), ("float16", "matrix"),
             ("float64", "matrix")]
    for values in _VALUES:
        for dtype, unit in kinds:
            yield Load(signature("matmul", dtype=dtype, unit=unit, values=values, flop=2.0 * size**3),
                       _matmul(torch, dtype, values, size))


def _matmul(torch, dtype, values, size):
    def make(device):
        _allow_tf32(torch, dtype == "tf32")
        kind = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
        a, b = (operand(torch, (size, size), kind, values, device) for _ in range(2))
        out = torch.empty_like(a)

        def call():
            torch.matmul(a, b, out=out)

        return call
    return make


def _allow_tf32(torch, allow):
    """By the setting that this torch has: it refuses a mixture of the two."""
    matmul = torch.backends.cuda.matmul
    if hasattr(matmul, "fp32_precision"):
        matmul.fp32_precision = "tf32" if allow else "ieee"
    else:
        matmul.allow_tf32 = allow


# x = x * x + c, which stays between -2 and 2, and is chaotic, for c between -2 and -1.5.
_CHAIN = """
template <typename T> T chain(T x, T c) {
  for (int i = 0; i < ROUNDS; ++i) x = x * x + c;
  return x;
}
"""


def vectors(torch, count, rounds):
    """Chains of multiply-adds in registers; float16 and bfloat16 are computed in float32 by element-wise
    operators, so they have no cost of their own.
    """
    for values in _VALUES:
        for dtype in ("float32", "float64"):
            yield Load(signature("vector", dtype=dtype, unit="vector", values=values,
                                 flop=2.0 * count * rounds),
                       _vector(torch, dtype, values, count, rounds))


def _vector(torch, dtype, values, count, rounds):
    def make(device):
        kind = getattr(torch, dtype)
        if values == "random":
            x = torch.rand(count, device=device, dtype=kind) * 2 - 1
            c = -1.5 - 0.5 * torch.rand(count, device=device, dtype=kind)
        else:
            x = operand(torch, (count,), kind, values, device)
            c = torch.zeros_like(x)
        if device == "cuda":
            chain = torch.cuda.jiterator._create_jit_fn(_CHAIN.replace("ROUNDS", str(rounds)))
            return lambda: chain(x, c)

        def call():
            y = x
            for _ in range(rounds):
                y = torch.addcmul(c, y, y)
            return y

        return call
    return make


def copies(torch, hbm, l2):
    """Bytes read and written."""
    for values in _VALUES:
        for level, size in (("hbm", hbm), ("l2", l2)):
            yield Load(signature("copy", level=level, values=values, byte=2.0 * size),
                       _copy(torch, values, size))


def _copy(torch, values, size):
    def make(device):
        source = operand(torch, (size // 2,), torch.bfloat16, values, device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)
    return make


def all_loads(torch, sizes):
    """Random operands of each kind first: they are what real ones are like."""
    kinds = [*matmuls(torch, sizes.matrix), *copies(torch, sizes.hbm, sizes.l2),
             *vectors(torch, sizes.vector, sizes.rounds)]
    return sorted(kinds, key=lambda load: next(i for i, values in enumerate(_VALUES)
                                               if f"values={values}," in load.signature))


class Session:
    """Runs pieces and tells the recorder of each when it was and how often it ran."""

    def __init__(self, recorder, synchronize=lambda: None, sleep=time.sleep):
        self._recorder, self._synchronize, self._sleep = recorder, synchronize, sleep

    def declare(self, signatures):
        """The pieces as operators of one step: what replays are of."""
        from joulediff import _abi

        begin = self._recorder.now()
        self._recorder.kernels(_abi.VALUES)
        for index, text in enumerate(signatures):
            self._recorder.operator(index, text.partition("(")[0], (), (), {"signature": text, "view": False})
        self._recorder.step(_abi.VALUES, 0, begin, self._recorder.now())
        self._recorder.kernels(_abi.WARMUP)

    def rest(self, text, seconds):
        begin = self._recorder.now()
        self._sleep(seconds)
        self._recorder.replay(text.encode(), begin, self._recorder.now(), 1)

    def measure(self, text, executions, seconds):
        """Back to back for so long, in chunks that follow one another without a pause.

        executions: has `seconds` of one, and run(n), which says how many it made.
        """
        n = max(1, round(min(_CHUNK_SECONDS, seconds) / executions.seconds))
        end = self._recorder.now() + seconds * 1e9
        while True:
            begin = self._recorder.now()
            done = executions.run(n)
            now = self._recorder.now()
            self._recorder.replay(text.encode(), begin, now, done)
            if now >= end:
                return

    def busy(self, call, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            call()
            self._synchronize()

    def trace(self, call, lengths):
        """Bursts, then trains of pulses, with the kernels' times recorded."""
        from joulediff import _abi

        self._recorder.kernels(_abi.TRACE)
        begin = self._recorder.now()
        for on, off in bursts(lengths.edges):
            self.busy(call, on)
            self._sleep(off)
        for pulse, period in trains():
            self._sleep(lengths.settle)
            due = time.monotonic()
            for _ in range(round(lengths.train / period)):
                self.busy(call, pulse)
                due += period
                self._sleep(max(0.0, due - time.monotonic()))
        self._recorder.step(_abi.TRACE, 1, begin, self._recorder.now())
        self._recorder.kernels(_abi.WARMUP)


class Progress:
    """Says on stderr which piece begins."""

    def __init__(self, pieces):
        self._pieces, self._done = pieces, 0

    def __call__(self, what, seconds):
        self._done += 1
        print(f"joulediff: calibrate {self._done} of {self._pieces}: {what}, {seconds:.1f} s", file=sys.stderr,
              flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="joulediff calibrate", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--made", action="append", default=[], metavar="SIGNATURE")
    return parser.parse_args(arguments)


def main(arguments=None):
    asked = parse(arguments)
    end = time.monotonic() + 60 * asked.minutes + (0 if asked.device == "cuda" else 120)
    from joulediff import _abi

    recorder = _abi.load()
    if recorder is None:
        print("joulediff: these loads are run by `joulediff calibrate -o BOARD.jd`", file=sys.stderr)
        return 2
    before = signature("idle", state="no context")
    Session(recorder).rest(before, SHORT.rest if asked.device == "cuda" else 0.01)
    try:
        import torch
    except ImportError as error:
        print(f"joulediff: calibrating needs torch: {error}; name a Python that has it with --python",
              file=sys.stderr)
        return 4
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("joulediff: calibrating needs a GPU that torch can use; `joulediff doctor` says what is "
              "missing", file=sys.stderr)
        return 4
    run(recorder, torch, asked, before, end)
    return 0


def run(recorder, torch, asked, before, end):
    """All pieces that are not made and for which there is time; what could not be is told."""
    from joulediff._executions import Executions, Spin
    from joulediff._measure import Idle

    cuda = asked.device == "cuda"
    sizes = SIZES[asked.device]
    session = Session(recorder, torch.cuda.synchronize if cuda else lambda: None)
    everything = all_loads(torch, sizes)
    session.declare([before, *(load.signature for load in everything)])
    loads = [load for load in everything if load.signature not in asked.made]
    traces = _TRACE not in asked.made
    took = lengths(60 * asked.minutes, traces, len(loads))
    if not cuda:  # this tries the code out, in as much time as there is
        part = 60 * asked.minutes / LONG.whole(traces, len(loads))
        took = Lengths(*(part * each for each in dataclasses.astuple(LONG)))

    def floor(*kinds):
        for what, executions in kinds:
            say(what, took.floor)
            session.measure(f"joulediff.{what}", executions, took.floor)

    say = Progress(4 + 2 * traces + len(loads) + (len(loads) > 0))
    spinning, idle = ("static", Spin() if cuda else Idle()), ("idle", Idle())
    on_board = torch.zeros(1, device=asked.device)
    floor(spinning, idle)
    if traces:
        say("bursts and pulses", took.of_trace())
        small = _matmul(torch, "bfloat16", "random", sizes.small)(asked.device)
        session.busy(small, 0.5 if cuda else 0.0)
        session.trace(small, took)
        floor(spinning)
    left, middle = [], len(loads) // 2
    for number, load in enumerate(loads):
        if time.monotonic() + took.load + 2 * took.floor > end:
            left.append(load.signature)
            continue
        if number == middle:
            floor(spinning)
        say(load.signature, took.load)
        try:
            executions = Executions(load.make(asked.device), (on_board,), capturable=cuda)
        except RuntimeError as error:  # too little memory, no compiler of kernels
            print(f"joulediff: calibrate leaves out {load.signature}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        session.measure(load.signature, executions, took.load)
        del executions
        if cuda:
            torch.cuda.empty_cache()
    floor(spinning, idle)
    recorder.flush()
    if left:
        print(f"joulediff: calibrate had no time for {len(left)} of {len(everything)} loads; "
              "`joulediff calibrate --resume` with the same file makes them", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
