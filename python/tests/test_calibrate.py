"""The pieces of the calibration loads, on the processor."""

import pytest

torch = pytest.importorskip("torch")

from joulediff import _abi, _calibrate  # noqa: E402
from recorder import Library  # noqa: E402


class Counted:
    """Executions that take a tenth of a second of the recorder's clock each."""

    seconds = 0.1

    def __init__(self, library):
        self.library, self.made = library, 0

    def run(self, n):
        self.made += n
        self.library.clock += int(n * self.seconds * 1e9)
        return n


def test_a_piece_says_what_it_does():
    assert (_calibrate.signature("copy", level="hbm", values="zeros", byte=2.0 * (1 << 30)) ==
            "calibrate.copy(level=hbm, values=zeros, byte=2.14748e+09)")
    names = [load.signature for load in (*_calibrate.matmuls(torch), *_calibrate.vectors(torch),
                                         *_calibrate.copies(torch))]
    assert len(names) == len(set(names)) == 15 + 12 + 6


def test_bursts_are_of_random_length_and_the_same_each_time():
    pairs = list(_calibrate.bursts(25))
    assert pairs == list(_calibrate.bursts(25))
    assert sum(on + off for on, off in pairs) >= 25
    assert len({round(on, 4) for on, _ in pairs}) > 40


def test_each_pulse_has_periods_in_step_and_beside():
    for pulse in {pulse for pulse, _ in _calibrate.trains()}:
        assert len([1 for one, _ in _calibrate.trains() if one == pulse]) >= 3


def test_loads_do_the_work_that_they_say():
    for load in (*_calibrate.matmuls(torch, 8), *_calibrate.vectors(torch, 16, 2),
                 *_calibrate.copies(torch, 64, 32)):
        load.make("cpu")()
    copy = next(_calibrate.copies(torch, 64, 32))
    assert copy.signature.endswith("byte=128)")
    target = copy.make("cpu")()
    assert target.numel() * target.element_size() == 64


def test_a_session_tells_when_and_how_often():
    library = Library()
    session = _calibrate.Session(_abi.Recorder(library), sleep=lambda seconds: None)
    session.declare(["calibrate.idle(state=no context)", "calibrate.copy(byte=8)"])
    assert [o.facts["signature"] for _, o in sorted(library.operators.items())] == [
        "calibrate.idle(state=no context)", "calibrate.copy(byte=8)"]
    session.rest("calibrate.idle(state=no context)", 4.0)
    counted = Counted(library)
    session.measure("calibrate.copy(byte=8)", counted, 1.0)
    texts = [text for text, _, _, _ in library.replays]
    assert texts[0] == b"calibrate.idle(state=no context)"
    chunks = library.replays[1:]
    assert sum(count for _, _, _, count in chunks) == counted.made
    assert chunks[-1][2] - chunks[0][1] >= 1e9
    assert all(begin < end for _, begin, end, _ in chunks)
