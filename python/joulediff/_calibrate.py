"""The loads of `joulediff calibrate`: what tells a board's sensors, its floors and its costs.

Run by the launcher, which reads the sensors all the while. In this order: a pause before there is a
context; the floors; bursts of random lengths, whose edges tell windows and lags; equal pulses at
several periods, some of them in step with what sensors have; work of known size on operands of several
kinds; the floors again, on a warm board. Each piece says in its signature what it does:
`calibrate.matmul(dtype=bfloat16, unit=matrix, values=random, flop=1.1e+12)`.
"""

import dataclasses
import random
import sys
import time

_FLOOR_SECONDS = 4.0
_LOAD_SECONDS = 3.0
_CHUNK_SECONDS = 0.25
_EDGE_SECONDS = 25.0
_SETTLE_SECONDS = 1.5
_PULSE = 0.02
# Seconds; 100 and 20 ms are what sensors of today have, the others are beside them.
_PULSE_PERIODS = (0.1, 0.0973, 0.1017, 0.2, 0.2031)
_SHORT_PULSE = 0.0035
_SHORT_PERIODS = (0.02, 0.0209, 0.0191)
_TRAIN_SECONDS = 6.0
_VALUES = ("zeros", "ones", "random")
_MATRIX = 8192
_HBM_BYTES = 1 << 30
_L2_BYTES = 8 << 20


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


def matmuls(torch, size=_MATRIX):
    """On matrix units; float32 runs on vector units where TF32 is off."""
    kinds = [("float16", "matrix"), ("bfloat16", "matrix"), ("tf32", "matrix"), ("float32", "vector"),
             ("float64", "matrix")]
    for dtype, unit in kinds:
        for values in _VALUES:
            yield Load(signature("matmul", dtype=dtype, unit=unit, values=values, flop=2.0 * size**3),
                       _matmul(torch, dtype, values, size))


def _matmul(torch, dtype, values, size):
    def make(device):
        kind = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
        a, b = (operand(torch, (size, size), kind, values, device) for _ in range(2))
        out = torch.empty_like(a)

        def call():
            torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
            torch.matmul(a, b, out=out)

        return call
    return make


def vectors(torch, count=_L2_BYTES // 4, rounds=64):
    """Arithmetic without traffic beyond the caches: polynomials of what lies in L2."""
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for values in _VALUES:
            yield Load(signature("vector", dtype=dtype, unit="vector", values=values,
                                 flop=2.0 * count * rounds),
                       _vector(torch, dtype, values, count, rounds))


def _vector(torch, dtype, values, count, rounds):
    def make(device):
        x = operand(torch, (count,), getattr(torch, dtype), values, device)
        out = x.clone()

        def call():
            for _ in range(rounds):
                torch.addcmul(x, x, x, value=0.5, out=out)

        return call
    return make


def copies(torch, hbm=_HBM_BYTES, l2=_L2_BYTES):
    """Bytes read and written."""
    for level, size in (("hbm", hbm), ("l2", l2)):
        for values in _VALUES:
            yield Load(signature("copy", level=level, values=values, byte=2.0 * size),
                       _copy(torch, values, size))


def _copy(torch, values, size):
    def make(device):
        source = operand(torch, (size // 2,), torch.bfloat16, values, device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)
    return make


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
        n = max(1, round(_CHUNK_SECONDS / executions.seconds))
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

    def trace(self, call):
        """Bursts, then trains of pulses, with the kernels' times recorded."""
        from joulediff import _abi

        self._recorder.kernels(_abi.TRACE)
        begin = self._recorder.now()
        for on, off in bursts(_EDGE_SECONDS):
            self.busy(call, on)
            self._sleep(off)
        for pulse, period in trains():
            self._sleep(_SETTLE_SECONDS)
            due = time.monotonic()
            for _ in range(round(_TRAIN_SECONDS / period)):
                self.busy(call, pulse)
                due += period
                self._sleep(max(0.0, due - time.monotonic()))
        self._recorder.step(_abi.TRACE, 1, begin, self._recorder.now())
        self._recorder.kernels(_abi.WARMUP)


def main():
    from joulediff import _abi

    recorder = _abi.load()
    if recorder is None:
        print("joulediff: these loads are run by `joulediff calibrate -o BOARD.jd`", file=sys.stderr)
        return 2
    before = signature("idle", state="no context")
    session = Session(recorder)
    session.rest(before, _FLOOR_SECONDS)
    try:
        import torch
    except ImportError as error:
        print(f"joulediff: calibrating needs torch: {error}; name a Python that has it with --python",
              file=sys.stderr)
        return 4
    if not torch.cuda.is_available():
        print("joulediff: calibrating needs a GPU that torch can use; `joulediff doctor` says what is "
              "missing", file=sys.stderr)
        return 4
    from joulediff._replay import Executions, Idle, Spin

    session = Session(recorder, torch.cuda.synchronize)
    loads = [*matmuls(torch), *vectors(torch), *copies(torch)]
    session.declare([before, *(load.signature for load in loads)])

    def floors():
        session.measure("joulediff.static", Spin(), _FLOOR_SECONDS)
        session.measure("joulediff.idle", Idle(), _FLOOR_SECONDS)

    on_board = torch.zeros(1, device="cuda")
    floors()
    small = _matmul(torch, "bfloat16", "random", 2048)("cuda")
    session.busy(small, 0.5)
    session.trace(small)
    for load in loads:
        executions = Executions(load.make("cuda"), (on_board,), capturable=True)
        session.measure(load.signature, executions, _LOAD_SECONDS)
        del executions
        torch.cuda.empty_cache()
    floors()
    recorder.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
