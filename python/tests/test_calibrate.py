"""The pieces of the calibration loads, on the processor."""

import time

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
    names = [load.signature for load in _calibrate.all_loads(torch, _calibrate.SIZES["cuda"])]
    assert len(names) == len(set(names)) == 15 + 6 + 6
    assert all("values=random" in name for name in names[:9]), "what matters most comes first"


def test_bursts_are_of_random_length_and_the_same_each_time():
    pairs = list(_calibrate.bursts(25))
    assert pairs == list(_calibrate.bursts(25))
    assert sum(on + off for on, off in pairs) >= 25
    assert len({round(on, 4) for on, _ in pairs}) > 40


def test_each_pulse_has_periods_in_step_and_beside():
    for pulse in {pulse for pulse, _ in _calibrate.trains()}:
        assert len([1 for one, _ in _calibrate.trains() if one == pulse]) >= 3


def test_loads_do_the_work_that_they_say():
    for load in _calibrate.all_loads(torch, _calibrate.Sizes(8, 16, 2, 64, 32, 8)):
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


def test_chains_of_vectors_stay_random():
    """Operands that become constant would cost less than what they stand for."""
    for load in _calibrate.vectors(torch, 1 << 10, 64):
        made = load.make("cpu")()
        assert made.isfinite().all()
        if "random" in load.signature:
            assert made.abs().max() <= 2 and made.std() > 0.5
        else:
            assert made.unique().tolist() == [0.0 if "zeros" in load.signature else 1.0]


def test_products_in_tf32_are_allowed_for_them_alone():
    for load in _calibrate.matmuls(torch, 8):
        load.make("cpu")
        assert torch.backends.cuda.matmul.fp32_precision == ("tf32" if "dtype=tf32" in load.signature else "ieee")


@pytest.mark.parametrize("minutes", [2.2, 2.5, 3, 4])
def test_the_time_is_shared_out(minutes):
    took = _calibrate.lengths(60 * minutes, True, 27)
    assert took.whole(True, 27) <= 60 * minutes + 1e-6
    assert took.load >= 1.7 and took.floor >= 2, "the meter needs as much"


def test_all_pieces_take_less_than_four_minutes():
    assert _calibrate.LONG.whole(True, 27) < 240


class Timed(Library):
    """Tells the time of day, and how long each piece was."""

    def __init__(self):
        super().__init__()
        self.jd_now = lambda: time.monotonic_ns()


@pytest.fixture
def dry(monkeypatch):
    """The whole of it on the processor, in some seconds."""
    def run(*arguments):
        library = Timed()
        monkeypatch.setattr(_abi, "load", lambda: _abi.Recorder(library))
        assert _calibrate.main(["--device", "cpu", "--minutes", "0.05", *arguments]) == 0
        return library
    return run


def names(library):
    return [text.decode() for text, _, _, _ in library.replays]


def test_the_whole_runs_on_the_processor(dry, capsys):
    library = dry()
    everything = {load.signature for load in _calibrate.all_loads(torch, _calibrate.SIZES["cpu"])}
    made = names(library)
    assert everything <= set(made)
    assert made[0] == "calibrate.idle(state=no context)" and made[1] == "joulediff.static"
    assert made[-1] == "joulediff.idle"
    declared = {o.facts["signature"] for o in library.operators.values()}
    assert declared == everything | {"calibrate.idle(state=no context)"}
    spinning = [i for i, name in enumerate(made) if name == "joulediff.static" and made[i - 1] != name]
    assert len(spinning) == 4, "as the board warms"
    assert [s[0] for s in library.steps] == [_abi.VALUES, _abi.TRACE]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 27 + 1 + 6 and said[-1].startswith("joulediff: calibrate 34 of 34: idle")


def test_what_is_made_is_not_made_again(dry):
    everything = [load.signature for load in _calibrate.all_loads(torch, _calibrate.SIZES["cpu"])]
    library = dry(*(word for name in ["calibrate.trace", *everything[:-2]] for word in ("--made", name)))
    assert [s[0] for s in library.steps] == [_abi.VALUES]
    loads = {name for name in names(library) if name.startswith("calibrate.")} - {"calibrate.idle(state=no context)"}
    assert loads == set(everything[-2:])
    assert {o.facts["signature"] for o in library.operators.values()} >= set(everything), "later blocks are fitted"


def test_without_time_what_is_left_is_told(dry, capsys, monkeypatch):
    clock = time.monotonic
    late = iter([clock()])
    monkeypatch.setattr(_calibrate.time, "monotonic", lambda: next(late, clock() + 1e6))
    monkeypatch.setattr(_calibrate.Session, "trace", lambda *_: None)
    dry("--made", "calibrate.trace")
    assert "had no time for 27 of 27 loads; `joulediff calibrate --resume`" in capsys.readouterr().err


def test_a_load_that_cannot_be_made_is_left_out(dry, capsys, monkeypatch):
    def fails(*_):
        def make(device):
            raise RuntimeError("no compiler\nand more")
        return make
    monkeypatch.setattr(_calibrate, "_vector", fails)
    library = dry("--made", "calibrate.trace")
    assert not any("vector" in name.partition("(")[0] for name in names(library))
    assert "leaves out calibrate.vector(dtype=float32" in capsys.readouterr().err


def test_without_a_gpu_one_line_says_so(monkeypatch, capsys):
    monkeypatch.setattr(_abi, "load", lambda: _abi.Recorder(Library()))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(_calibrate.time, "sleep", lambda _: None)
    assert _calibrate.main(["--minutes", "1"]) == 4
    assert len(capsys.readouterr().err.splitlines()) == 1
