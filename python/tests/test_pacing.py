"""The replay at the clock of the program (bursts with pauses), and with operands that are in no cache."""

import statistics

import pytest
import torch

from joulediff import _executions, _measure
from test_recording import Launcher, run

PROGRAM = """
    import torch
    import joulediff.torch
    {before}

    torch.manual_seed(0)
    layer = torch.nn.Linear(64, 64)
    x = torch.randn(512, 64)
    with torch.inference_mode():
        for _ in joulediff.torch.steps(12):
            layer(x).relu_()
"""
BURST, IDLE = 2_000_000, 3_000_000


class Paces(Launcher):
    """Wants pauses from the second chunk on, and two chunks with them."""

    def answer(self, number, chunks):
        if number == "0":  # the floor
            return "enough"
        return {1: "more 3", 2: f"pace 200 {BURST} {IDLE}", 3: f"pace 200 {BURST} {IDLE}"}.get(chunks, "enough")


def replays(got, signature):
    return [r for r in got.replays if r[0].startswith(signature)]


def test_a_replay_pauses_as_it_is_told(tmp_path):
    launcher = Paces(tmp_path / "socket")
    [got], _ = run(tmp_path / "a", PROGRAM.format(before=""), JOULEDIFF_SOCKET=str(tmp_path / "socket"))
    assert got.passes()[-1] == 4 and "record.recording_failed" not in got.diagnostics()
    kinds = [line[0] for line in launcher.lines]
    assert kinds[:4] == ["plan", "replay", "trace", "replay"], "the floor is no part of the program"
    begin, end, steps = map(int, launcher.lines[2][1:])
    trace = [s for s in got.steps if s[0] == 3]
    assert (begin, end, steps) == (trace[0][2], trace[-1][3], len(trace))

    number = "1"  # the costliest comes as it is called first
    told = [tuple(map(int, line[2:])) for line in launcher.lines if line[0] == "replay" and line[1] == number]
    assert len(told) == 4
    made = replays(got, "aten.addmm") or replays(got, "aten.linear")
    for tight in (0, 1):
        assert made[tight][1:] == told[tight]
    bursts = made[2:]
    assert len(bursts) > 4, "a replay for each burst"
    assert sum(b[3] for b in bursts) == told[2][2] + told[3][2] >= 400
    assert bursts[0][1] - made[1][2] >= 0.09e9, "a window of its own"
    assert all(b[1] >= a[2] for a, b in zip(bursts, bursts[1:], strict=False))
    pauses = [b[1] - a[2] for a, b in zip(bursts, bursts[1:], strict=False)]
    ratios = [pause / (burst[2] - burst[1]) for burst, pause in zip(bursts, pauses, strict=False) if pause < 35e6]
    assert min(ratios) >= 0.7 * IDLE / BURST, "as long as the burst was, and not less"
    assert statistics.median(ratios) < 3 * IDLE / BURST, "a loaded machine sleeps longer"
    assert statistics.median(pauses) < 50e6, "one window at one pace"
    assert len({p // 100_000 for p in pauses}) > 1, "by lot"


def test_operands_that_are_in_no_cache(tmp_path):
    cold = "import joulediff._replay; joulediff._replay.cache_bytes = lambda: 1 << 20"
    Launcher(tmp_path / "socket")
    [got], with_us = run(tmp_path / "a", PROGRAM.format(before=cold) + "    print(layer(x).sum().item())\n",
                         JOULEDIFF_SOCKET=str(tmp_path / "socket"))
    nothing, without = run(tmp_path / "b", PROGRAM.format(before="") + "    print(layer(x).sum().item())\n",
                           JOULEDIFF_SPOOL="")
    assert with_us == without
    assert "record.recording_failed" not in got.diagnostics()
    warm = {r[0] for r in got.replays if not r[0].startswith("joulediff.")}
    assert {r[0] for r in got.replays if r[0].startswith("joulediff.cold ")} == {
        "joulediff.cold " + signature for signature in warm}


def test_how_many_clones_a_cache_takes():
    assert _executions.turns(1 << 20, 10 << 20) == 21
    assert _executions.turns(11 << 20, 10 << 20) == 0, "cold as it is"
    assert _executions.turns(64, 50 << 20) == 0, "it does not matter"
    assert _executions.turns(0, 50 << 20) == 0


def test_in_turns_each_set_and_each_result_has_memory_of_its_own():
    sets = [torch.full((8,), float(i)) for i in range(3)]
    calls = _executions.InTurns([lambda x=x: x + 1 for x in sets])
    first = [calls() for _ in range(3)]
    assert [r[0].item() for r in first] == [1, 2, 3]
    assert len({r.data_ptr() for r in first}) == 3
    assert calls()[0].item() == 1


def test_result_bytes_leave_out_what_the_operands_hold():
    x = torch.zeros(100)
    copies = _executions.spans([x])
    new = _executions.clone(x, copies)
    # A clone's storage is that of its copy: views of it take nothing.
    inside = {kept.untyped_storage()._cdata: kept for _, kept in copies.values()}
    assert _executions.result_bytes([new[:10], new + 1], inside) == 400


class Says:
    def __init__(self, line):
        self.line = line

    def readline(self):
        return self.line


@pytest.mark.parametrize("line", ["pace 3\n", "pace 3 0 5\n", "pace 3 5 0\n", "more\n", "more -1\n", "\n", "hello 1\n"])
def test_an_answer_that_cannot_be_is_a_lost_launcher(line):
    launcher = object.__new__(_measure.Launcher)
    launcher._lines = Says(line)
    with pytest.raises(_measure.Lost):
        launcher.more()


def test_the_launchers_answers():
    launcher = object.__new__(_measure.Launcher)
    for line, answer in (("more 7\n", (7, None)), ("pace 7 5 6\n", (7, (5, 6))), ("enough\n", (0, None))):
        launcher._lines = Says(line)
        assert launcher.more() == answer
