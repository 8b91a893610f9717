"""The scripts that judge recordings (closure, no_difference, bursts): what they make of given figures."""

import argparse
import json
import pathlib
import stat
import sys
import time

import pytest

import bursts
import closure
import counter
import no_difference
import programs
import recordings
import run_file

CASES = pathlib.Path(__file__).resolve().parents[2] / "cases"
LINES = {"operators": 20.0, "static": 5.0, "launch_gap": 1.0, "waiting": 0.0, "idle": 2.0,
         "overlap": -0.5, "unattributed": 0.5}
UNSEEN = {"trace": {"sm_mhz": None, "held_back": None},
          "replay": {"sm_mhz": None, "held_back": None}}
SEEN = {"trace": {"sm_mhz": 1980.0, "held_back": 0.0},
        "replay": {"sm_mhz": 1950.4, "held_back": 0.126}}


def shown(lines=(), boundary="board", operators=(), conditions=SEEN):
    lines = LINES | dict(lines)
    return {"run": {"device": "a board", "framework": "torch"},
            "energy": {"joules": sum(v for v in lines.values() if v is not None), "seconds": 0.05,
                       "boundary": boundary, "meter": "a counter", "standing": "measured",
                       "recognised": 0.993},
            "ledger": {boundary: [{"line": k, "joules": v} for k, v in lines.items()]},
            "operators": list(operators), "diagnostics": [], "conditions": conditions}


def test_all_lines_but_the_last_are_the_prediction():
    found = recordings.closure(shown())
    assert found["measured"] == 28.0 and found["predicted"] == pytest.approx(27.5)
    assert found["unattributed"] == pytest.approx(0.5 / 28)
    negative = recordings.closure(shown({"unattributed": -1.5}))
    assert negative["predicted"] == pytest.approx(27.5)
    assert negative["unattributed"] == pytest.approx(-1.5 / 26)


@pytest.mark.parametrize("boundary, unknown, known", [
    ("board", "operators", False), ("board", "idle", False), ("host", "idle", True),
    ("host", "operators", False)])
def test_an_unknown_line_is_no_zero(boundary, unknown, known):
    found = recordings.closure(shown({unknown: None}, boundary))
    assert (found["predicted"] is not None) == known == (found["unattributed"] is not None)
    assert found["unknown_lines"] == [unknown]


@pytest.mark.parametrize("unattributed, interval, expected", [
    (0.03, 0.001, "within 3 %"), (-0.03, None, "within 3 %"), (0.031, 0.02, "NO"),
    (-0.05, 0.06, "within repeats"), (0.11, 0.5, "NO"), (0.05, None, "NO"), (None, 0.06, "unknown")])
def test_a_ledger_closes_within_the_limit_or_the_repeats(unattributed, interval, expected):
    assert closure.verdict(unattributed, interval) == expected


TICKS = [(100 * n, 30.0 * n) for n in range(11)]


@pytest.mark.parametrize("begin, end, expected", [
    (100, 900, 240.0), (150, 875, 217.5), (0, 1000, 300.0), (310, 590, None), (-1, 900, None),
    (100, 1001, None)])
def test_energy_between_the_ticks_of_a_counter(begin, end, expected):
    assert counter.between(TICKS, begin, end) == (expected and pytest.approx(expected))


def test_a_repeat_that_no_tick_covers_is_left_out():
    windows = [{"begin": 100, "end": 900, "steps": 8, "processor_seconds": 4.0},
               {"begin": 900, "end": 1100, "steps": 8, "processor_seconds": 6.0}]
    assert closure.energies(windows, TICKS) == [pytest.approx(30.0)]
    assert closure.energies(windows, []) == []
    assert closure.energies(windows, None) == [0.5, 0.75]


def test_the_interval_of_repeats():
    found = closure.spread([1.0, 1.02, 0.98, 1.01, 0.99])
    assert found["mean"] == pytest.approx(1) and found["range"] == pytest.approx(0.04)
    assert found["interval"] == pytest.approx(2.77645 * 0.0158114 / 5**0.5, rel=1e-4)
    assert closure.spread([1.0])["interval"] is None


PROGRAM = """
import json, sys
count = int(sys.argv[sys.argv.index("--repeats") + 1])
if count > 1 and sys.argv[1] == "no forks":
    sys.exit(1)
window = {"begin": 0, "end": 1, "steps": 2, "processor_seconds": 1.0}
open(sys.argv[-1], "w").write(json.dumps([window] * count))
"""


class Repeating:
    late = False

    def __init__(self, folder, how):
        self.folder, self.how, self.runs = folder, how, 0

    def path(self, name):
        return self.folder / name

    def command(self, words):
        self.runs += 1
        return [sys.executable, "-c", PROGRAM, self.how]


@pytest.mark.parametrize("how, runs", [("forks", 1), ("no forks", 4)])
def test_repeats_are_forks_of_one_process_or_processes_of_their_own(tmp_path, how, runs):
    args = argparse.Namespace(repeats=3, seconds=1)
    recorder = Repeating(tmp_path, how)
    for _ in range(2):  # the second time they are there
        assert closure.repeat(recorder, ["--model", "tiny", "--batch", "8"], args, None) == [0.5] * 3
    assert recorder.runs == runs and (tmp_path / "tiny-8-repeats.json").exists()


class Rising:
    """A counter that moves every 20 ms."""

    def joules(self):
        return time.monotonic_ns() // 20_000_000 * 2.0


def test_a_counter_is_watched_until_the_last_window_is_covered():
    with counter.Watch(Rising()) as watch:
        time.sleep(0.1)
        begin = time.monotonic_ns()
        time.sleep(0.4)
        windows = [{"begin": begin, "end": time.monotonic_ns()}]
        counter.wait_for_ticks(watch, windows, most=10)
    joules = counter.between(watch.ticks, windows[0]["begin"], windows[0]["end"])
    assert joules == pytest.approx((windows[0]["end"] - begin) * 1e-9 * 100, rel=0.2)
    with counter.Watch(None) as none:
        counter.wait_for_ticks(none, windows)
    assert none.ticks == []


def closure_row(name="gpt2-4", unattributed=0.5, interval=0.004):
    model, batch = name.rsplit("-", 1)
    found = recordings.closure(shown({"unattributed": unattributed}))
    return {"name": name, "model": model, "batch": int(batch), **found,
            "repeats": {"interval": interval}, "conditions": SEEN,
            "verdict": closure.verdict(found["unattributed"], interval)}


def test_the_table_of_closures():
    head, row, open_one = closure.table([closure_row(), closure_row("llama-16", 3.0)])
    assert row.split() == ["gpt2", "4", "560", "28", "J", "27.5", "J", "+1.8", "%", "+-0.4", "%",
                           "within", "3", "%"]
    assert open_one.endswith("+9.8 %   +-0.4 %  NO")
    conditions = list(closure.conditions_table([closure_row()]))
    assert conditions[1].split() == ["gpt2", "4", "50.000", "99.3", "%", "1980", "MHz", "0", "%",
                                     "1950", "MHz", "13", "%"]
    assert all(len(line) <= 100 for line in (head, row, open_one, *conditions))


@pytest.mark.parametrize("rows, expected", [
    ([closure_row()], [True]), ([closure_row(unattributed=3.0)], [False]),
    ([closure_row(unattributed=2.5, interval=0.2)], [True]), ([], [False])])
def test_what_closure_must_hold(rows, expected):
    assert [holds for _, holds in closure.judged(rows, ["gpt2-4"])] == expected


def report(value, low, high, findings=(), ok=True):
    gate = {"limit": 0.05, "value": value, "low": low, "high": high, "result": "x"} if ok else None
    total = {"boundary": "board"}
    return {"comparable": {"ok": ok, "reasons": [] if ok else [{"message": "other inputs"}]},
            "energy": {"a": total, "b": total, "noise_floor": 0.01 if ok else None,
                       "difference": {"value": value, "low": low, "high": high} if ok else None},
            **({"gate": gate} if gate else {}),
            "findings": [{"verdict": v, "side": "a", "cause": {"message": "x"}} for v in findings]}


@pytest.mark.parametrize("told, found", [
    (report(0.01, -0.02, 0.04), False), (report(0.08, 0.06, 0.10), True),
    (report(-0.08, -0.10, -0.06), True), (report(0.06, 0.04, 0.08), False),
    (report(0.06, None, None), False), (report(0, -0.1, 0.1, ["undecided"]), False),
    (report(0, -0.1, 0.1, ["waste"]), True), (report(0, -0.1, 0.1, ["trade-off"]), True),
    (report(0, 0, 0, ok=False), True)])
def test_what_a_finding_is(told, found):
    row = no_difference.compared(3, told)
    assert row["found"] == found
    line = list(no_difference.comparisons_table([row]))[1]
    assert line.split()[0] == "3" and line.endswith("none") != found and len(line) <= 100


def test_how_small_a_difference_would_have_been_told():
    rows = [no_difference.compared(1, report(0, -w, w)) for w in (0.01, 0.02, 0.5)]
    assert no_difference.half_width(rows) == pytest.approx(0.02)
    assert no_difference.half_width([no_difference.compared(1, report(0, 0, 0, ok=False))]) is None


def operator(name, joules, share=0.5, standing="replayed"):
    return {"name": name, "joules": joules, "calls": 2, "standing": standing, "share_of_run": share,
            "where": {"file": "a.py", "line": 4}}


def test_the_spread_of_an_operator_over_processes():
    runs = [shown(operators=[operator("aten.mm", mm), operator("aten.add", 1.0, 0.004),
                             operator("aten.gelu", 2.0, standing="estimated")])
            for mm in (10.0, 10.1, 9.7)] + [shown(operators=[operator("aten.mm", 10.2)])]
    [row] = no_difference.repeated(runs)
    assert row["operator"] == "aten.mm" and row["deviation"] == pytest.approx(0.03)
    assert row["spread"] == pytest.approx(0.0216, rel=1e-2)
    assert all(len(line) <= 100 for line in no_difference.operators_table([row]))
    assert no_difference.repeated(runs[:1]) == [] == no_difference.repeated([])


@pytest.mark.parametrize("made, found, deviation, expected", [
    (20, 1, 0.02, [True, True, True]), (20, 2, 0.02, [True, False, True]),
    (19, 0, 0.021, [False, True, False]), (0, 0, 0.01, [False, False, True]), (20, 0, None, [True, True, False])])
def test_what_no_difference_must_hold(made, found, deviation, expected):
    rows = [{"found": n < found, "noise_floor": 0.01} for n in range(made)]
    rows += [{"found": False, "noise_floor": None}]  # of one process a side: no control
    operators = [] if deviation is None else [{"operator": "aten.add", "deviation": 0.0},
                                              {"operator": "aten.mm", "deviation": deviation}]
    assert [holds for _, holds in no_difference.judged(rows, 20, operators)] == expected


def test_bursts_are_judged_by_the_whole_and_by_the_work():
    dense = bursts.judge("dense", shown({"idle": 0.0}))
    spread = bursts.judge("bursts", shown({"operators": 21.0, "idle": 200.0, "unattributed": 4.0}))
    assert dense["work"] == pytest.approx(25.0) and dense["of_work"] == pytest.approx(0.02)
    assert spread["of_work"] == pytest.approx(4 / 29.5)
    assert [holds for _, holds in bursts.judged([dense, spread])] == [True, True, True, False]
    assert bursts.effect([dense, spread]) == (pytest.approx(29.5 / 25 - 1),
                                              pytest.approx(25.5 / 24.5 - 1))
    assert [holds for _, holds in bursts.judged([dense])] == [True, True, False]
    assert bursts.effect([dense]) == (None, None)
    lines = list(bursts.table([dense, spread]))
    assert all(len(line) <= 100 for line in lines) and "1950 MHz" in lines[1]


def test_bursts_of_which_a_line_is_unknown():
    row = bursts.judge("bursts", shown({"static": None}, conditions=UNSEEN))
    assert row["work"] is None and not any(holds for _, holds in bursts.judged([row]))
    assert list(bursts.table([row]))[1].split()[-2:] == ["-", "-"]


def test_clocks_and_limits_of_a_recorded_run():
    """`show` says of this run: held back for 0 % of the trace and 13 % of the replay."""
    found = run_file.conditions(CASES / "hf-39073/runs/b.jd")
    assert found["trace"] == {"sm_mhz": 1980, "held_back": 0}
    assert 1900 < found["replay"]["sm_mhz"] < 1980 and 0.1 < found["replay"]["held_back"] < 0.2


def test_without_zstd_clocks_are_unknown_and_nothing_else(monkeypatch, capsys):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")
    monkeypatch.setattr(run_file.ctypes, "CDLL", missing)
    assert run_file.conditions(CASES / "hf-39073/runs/b.jd") == UNSEEN
    assert "clocks are not known: libzstd.so.1" in capsys.readouterr().out


def test_of_replays_at_several_clocks_the_last_counts():
    ms = 1_000_000
    replays = [(0, 1, 0, 500 * ms), (0, 1, 501 * ms, 900 * ms), (0, 2, 910 * ms, 990 * ms),
               (0, 1, 1000 * ms, 1010 * ms), (0, 1, 1025 * ms, 1035 * ms)]
    assert run_file.last_windows(replays) == [(0, 1000 * ms, 1035 * ms), (0, 910 * ms, 990 * ms)]


def test_samples_count_where_they_lie_in_a_window():
    samples = {0: [(1, 10), (5, 20), (9, 90)], 1: [(5, 30)]}
    assert run_file.mean_within(samples, [(0, 4, 8), (1, 5, 5)]) == 25
    assert run_file.mean_within(samples, [(2, 0, 9), (0, 6, 8)]) is None


def recorder(tmp_path, body, minutes=1):
    program = tmp_path / "joulediff"
    program.write_text("#!/bin/sh\n" + body)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return recordings.Recordings(argparse.Namespace(
        program=str(program), device="cpu", folder=str(tmp_path / "runs"), minutes=minutes))


def test_a_recording_is_made_once(tmp_path, capsys):
    made = recorder(tmp_path, f'echo "$@" >> {tmp_path}/calls; [ "$4" = --pair ] && touch "$6"\n'
                    'touch "$5"')
    for _ in range(2):
        assert made.one("one", ["--model", "tiny"], ["--blocks", "1"]) == made.path("one.jd")
        a, b = made.pair("two", ["--model", "tiny"], [])
    assert a.exists() and b.name == "two-b.jd"
    one, two = (tmp_path / "calls").read_text().splitlines()
    assert "--blocks 1 --" in one and one.endswith("programs.py --device cpu --model tiny")
    assert two.count("programs.py") == 2 and " --- " in two
    assert capsys.readouterr().out.count(" s\n") == 2


def test_a_recording_that_fails_or_comes_too_late_is_told(tmp_path, capsys):
    assert recorder(tmp_path, "echo no meter >&2; exit 4").one("one", [], []) is None
    assert "record ended with 4: no meter" in capsys.readouterr().out
    assert recorder(tmp_path, "exit 0", minutes=-1).one("one", [], []) is None
    assert "no time is left" in capsys.readouterr().out


def test_a_recording_that_hangs_is_ended(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recordings, "LONGEST", 0.5)
    begin = time.monotonic()
    assert recorder(tmp_path, "exec sleep 60").one("one", [], []) is None
    assert "took longer than 0.5 s" in capsys.readouterr().out and time.monotonic() - begin < 30


@pytest.mark.parametrize("code, expected", [(0, {"x": 1}), (1, {"x": 1}), (6, {"x": 1}), (5, None)])
def test_a_gate_that_fails_is_no_trouble(tmp_path, capsys, code, expected):
    told = recorder(tmp_path, f"echo '{{\"x\": 1}}'; echo trouble >&2; exit {code}")
    assert told.compare("a", "b") == expected
    assert ("trouble" in capsys.readouterr().out) == (expected is None)


def test_a_run_whose_energy_is_not_known_has_no_figures(tmp_path, capsys):
    made = recorder(tmp_path, """echo '{"energy": null}'""")
    assert made.show(made.path("one.jd")) is None
    assert "one.jd: no energy is known" in capsys.readouterr().out


def test_figures_are_kept_and_what_tells_nothing_is_said(tmp_path, capsys):
    args = argparse.Namespace(json=str(tmp_path / "f.json"))
    claims = [("one", True), ("two", False)]
    assert recordings.conclude(args, {"rows": [1]}, claims, {"host"}) == 1
    out = capsys.readouterr().out
    assert "tell nothing" in out and "NO  two" in out
    assert json.loads((tmp_path / "f.json").read_text()) == {"rows": [1], "claims": dict(claims)}
    assert recordings.conclude(args, {}, claims[:1], {"board"}) == 0


def test_each_row_is_printed_and_kept_at_once(tmp_path, capsys):
    args = argparse.Namespace(json=str(tmp_path / "figures" / "f.json"))
    made = recordings.Rows(args, "programs", closure.table)
    for count, name in enumerate(("gpt2-4", "vit-8"), 1):
        made.add(closure_row(name))
        out = capsys.readouterr().out.splitlines()
        assert len(out) == (2 if count == 1 else 1) and out[-1].startswith(name.split("-")[0])
        assert len(json.loads((tmp_path / "figures" / "f.json").read_text())["programs"]) == count


def test_no_recording_is_begun_that_would_end_too_late(tmp_path, capsys):
    made = recorder(tmp_path, 'touch "$5"; sleep 1', minutes=1.5 / 60)
    assert made.one("one", [], []) is not None
    assert made.late and made.one("two", [], []) is None
    assert "two.jd: not recorded, no time is left" in capsys.readouterr().out


def test_a_fork_tells_what_it_found_or_that_it_failed(capfd):
    assert programs.forked(lambda x: {"twice": 2 * x}, 4) == {"twice": 8}
    assert programs.forked(lambda: 1 / 0) is None


@pytest.mark.parametrize("model, batch, work", [("tiny", 8, ("sample", 8)),
                                                ("mlp", 1, ("token", 1024))])
def test_programs_make_steps(model, batch, work):
    program = programs.Program(model, batch, "cpu")
    assert program.work == work
    with program.inference():
        assert program.run_for(0.01) >= 1


SMALL = {"gpt2": (programs.GPT2, {"n_layer": 1, "n_embd": 64, "n_head": 2}),
         "vit": (programs.VIT, {"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 64,
                                "num_attention_heads": 2}),
         "llama": (programs.LLAMA, {"num_hidden_layers": 1, "hidden_size": 64, "vocab_size": 64,
                                    "intermediate_size": 64, "num_attention_heads": 2,
                                    "num_key_value_heads": 1})}


@pytest.mark.parametrize("model", SMALL)
def test_models_of_transformers_are_in_bfloat16(monkeypatch, model):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    shape, small = SMALL[model]
    for key, value in small.items():
        monkeypatch.setitem(shape, key, value)
    program = programs.Program(model, 2, "cpu")
    with program.inference():
        assert program.step().logits.dtype == torch.bfloat16
    assert program.work[1] == 2 * (1 if model == "vit" else programs.LENGTH)
    assert torch.get_default_dtype() == torch.float32
