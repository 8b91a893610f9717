"""Whole recordings in processes of their own, with the real recorder and a small launcher."""

import os
import pathlib
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

import spool
from joulediff import _recording

PYTHON = pathlib.Path(__file__).parents[1]


def library():
    builds = sorted((p for p in PYTHON.parent.glob("build/*/lib/libjoulediff-record.so")
                     if "san" not in p.parts[-3]), key=lambda p: -p.stat().st_mtime)
    path = os.environ.get("JOULEDIFF_LIBRARY") or (str(builds[0]) if builds else None)
    if path is None:
        pytest.skip("libjoulediff-record.so is not built")
    return path


class Launcher(threading.Thread):
    """Asks each replayed operator for two chunks; `lines` is what it was told."""

    def __init__(self, path, hang_up_after=None):
        super().__init__(daemon=True)
        self.lines, self._hang_up_after = [], hang_up_after
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(1)
        self.start()

    def run(self):
        connection, _ = self._server.accept()
        chunks = {}
        with connection, connection.makefile("rw", encoding="ascii") as stream:
            for line in stream:
                self.lines.append(line.split())
                if self._hang_up_after == len(self.lines):
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                if line.startswith("plan "):
                    stream.write(line.replace("plan", "replay"))
                    stream.flush()
                if line.startswith("replay "):
                    number = line.split()[1]
                    chunks[number] = chunks.get(number, 0) + 1
                    stream.write(self.answer(number, chunks[number]) + "\n")
                    stream.flush()

    def answer(self, number, chunks):
        return "more 3" if chunks < 2 else "enough"


def run(folder, script, *, inject=True, expect=0, name="program.py", **environment):
    """Runs the script with the recorder; the spools, and what it printed."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(textwrap.dedent(script))
    spools = folder / "spools"
    spools.mkdir(exist_ok=True)
    path = [str(PYTHON / "joulediff/inject")] if inject else []
    env = {k: v for k, v in os.environ.items() if not k.startswith("JOULEDIFF_")}
    env |= {"PYTHONPATH": os.pathsep.join([*path, str(PYTHON)]), "JOULEDIFF_SPOOL": str(spools),
            "JOULEDIFF_LIBRARY": library(), "JOULEDIFF_STEPS": "3", "OMP_NUM_THREADS": "1"}
    env |= environment
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True,
                          cwd=folder, check=False, timeout=120)
    assert done.returncode == expect, done.stderr
    return spool.read_all(spools), done.stdout


TRAIN = """
    import torch
    import joulediff.torch

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    joulediff.torch.work("sample", 5)
    done = 0
    for _ in joulediff.torch.steps(15):
        optimizer.zero_grad()
        loss = model(torch.randn(5, 8)).square().mean()
        loss.backward()
        optimizer.step()
        done += 1
    print(done, loss.item(), [p.sum().item() for p in model.parameters()], torch.rand(1).item())
"""


def test_what_a_program_states_is_in_its_manifest(tmp_path):
    says = """
    joulediff.torch.state(**{"quality.value": 90.9, "quality.precision": ["fp8", "bf16"],
                             "phases.load": False})
    """
    [got], printed = run(tmp_path / "a", TRAIN + says)
    stated = {}
    for topic, fields in got.facts:
        stated |= fields if topic == "manifest" else {}
    assert printed.startswith("15 ") and stated["work_unit"] == "sample"
    assert stated["quality.value"] == "90.9" and stated["quality.precision"] == "fp8,bf16"
    assert stated["phases.load"] == "false"
    nothing, _ = run(tmp_path / "b", TRAIN + says, JOULEDIFF_SPOOL="")
    assert nothing == []


def test_a_recorded_program_computes_the_same_bits(tmp_path):
    launcher = Launcher(tmp_path / "socket")
    [got], with_us = run(tmp_path / "a", TRAIN, JOULEDIFF_SOCKET=str(tmp_path / "socket"))
    nothing, without = run(tmp_path / "b", TRAIN, JOULEDIFF_SPOOL="")
    assert with_us == without and with_us.startswith("15 ") and nothing == []
    assert got.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]
    assert [s[1] for s in got.steps] == list(range(11))
    assert all(a[3] <= b[2] for a, b in zip(got.steps, got.steps[1:], strict=False))
    trace = [s for s in got.steps if s[0] == 3]
    assert trace[0][3] == trace[1][2] and trace[1][3] == trace[2][2]  # no gap between steps
    assert got.times == 3 * len(got.operators) and got.tensors > len(got.operators)
    assert set(got.diagnostics()) <= {"record.no_kernels"}

    assert {line[0] for line in launcher.lines} == {"plan", "replay", "trace"}
    plan = int(launcher.lines[0][1])
    told = [line for line in launcher.lines if line[0] == "replay"]
    assert launcher.lines[0][0] == "plan" and len({line[1] for line in told}) == plan
    assert [r[1:] for r in got.replays] == [tuple(map(int, line[2:])) for line in told]
    assert got.replays[0][0] == "joulediff.idle" and got.replays[1][3] == 3
    assert any(r[0].startswith("aten.addmm.default(") for r in got.replays)

    [manifest] = [f for topic, f in got.facts if topic == "manifest"]
    assert manifest["work_unit"] == "sample" and manifest["work_per_step"] == 5
    assert got.settings()["torch.are_deterministic_algorithms_enabled"] == "True"
    assert got.settings()["torch.float32_matmul_precision"] == "highest"
    assert got.settings()["env.OMP_NUM_THREADS"] == "1"
    assert not any("JOULEDIFF" in key for key in got.settings())


def test_a_lost_launcher_costs_the_replay_alone(tmp_path):
    Launcher(tmp_path / "socket", hang_up_after=3)
    [got], out = run(tmp_path / "a", TRAIN, JOULEDIFF_SOCKET=str(tmp_path / "socket"))
    assert out.startswith("15 ")
    assert got.diagnostics()["record.launcher_lost"].startswith("joulediff record answered no more")
    assert got.passes()[-1] == 4


def test_gpt2_without_edits(tmp_path):
    pytest.importorskip("transformers")
    [got], out = run(tmp_path / "a", """
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100)).eval()
        tokens = torch.randint(0, 100, (2, 12))
        with torch.inference_mode():
            for _ in range(11):
                logits = model(tokens, use_cache=False).logits
        print(logits.sum().item())
    """)
    assert got.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]
    names = list(got.operators.values())
    assert names.count("aten.addmm.default") == 8 and "aten.native_layer_norm.default" in names
    assert got.settings()["model.config.n_embd"] == "32"
    assert got.settings()["model.config.attn_implementation"] == "sdpa"
    assert got.diagnostics().keys() <= {"record.no_replay", "record.no_kernels"}


REGION = """
    import torch

    class Net:
        def forward(self, x):
            return (x @ x).relu()

    def step(x):
        return Net().forward(x)

    def main():
        x = torch.ones(4, 4)
        for _ in range(11):
            step(x)
            x = x + 1

    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("region", ["__main__:step", "__main__:Net.forward"])
def test_a_named_region_of_the_script(tmp_path, region):
    [got], _ = run(tmp_path / "a", REGION, JOULEDIFF_REGION=region)
    assert got.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]
    assert list(got.operators.values()) == ["aten.mm.default", "aten.relu.default",
                                            "aten.add.Tensor"]


def test_a_named_region_of_a_module_and_a_hidden_sitecustomize(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/library.py").write_text(textwrap.dedent(REGION))
    (tmp_path / "a/sitecustomize.py").write_text("import sys; sys.chained = True")
    path = os.pathsep.join([str(PYTHON / "joulediff/inject"), str(tmp_path / "a")])
    [got], out = run(tmp_path / "a", "import sys, library; library.main(); print(sys.chained)",
                     JOULEDIFF_REGION="library:step", JOULEDIFF_PASSES="values,trace",
                     PYTHONPATH=path)
    assert out == "True\n"
    assert got.passes() == [0, 1, 0, 0, 3, 3, 3]
    assert "record.no_replay" not in got.diagnostics()


def test_a_program_that_ends_early_says_so(tmp_path):
    [got], _ = run(tmp_path / "a", """
        import torch
        model = torch.nn.Linear(4, 4)
        for _ in range(2):
            model(torch.ones(2, 4)).exp()
    """)
    assert got.passes() == [0, 1]
    assert got.diagnostics()["record.ended_early"] == (
        "the program ended after 2 steps, before it had made order, trace, replay: let it run longer, or ask "
        "for fewer --steps or --trace-seconds")
    assert "aten.exp.default" in got.operators.values()  # after the region


def test_spawned_workers_record_too(tmp_path):
    got, _ = run(tmp_path / "a", """
        import multiprocessing

        def work(seed):
            import torch
            model = torch.nn.Linear(4, 4)
            for _ in range(11):
                model(torch.ones(2, 4))

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                pool.map(work, [0])
                pool.close()
                pool.join()
    """)
    assert [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4] in [s.passes() for s in got]


def test_a_forked_child_is_left_alone(tmp_path):
    got, out = run(tmp_path / "a", """
        import os, torch
        import joulediff.torch
        for i in joulediff.torch.steps(1):
            x = torch.ones(3).exp()
            if i == 1:
                child = os.fork()
                if child == 0:
                    torch.ones(3).exp()
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        print(i)
    """)
    assert out == "10\n"
    assert [s.passes() for s in got if s.steps] == [[0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]]


def test_without_a_recorder_nothing_is_loaded(tmp_path):
    got, out = run(tmp_path / "a", """
        import sys
        import joulediff.torch
        print(list(joulediff.torch.steps(3)), "torch" in sys.modules, "ctypes.util" in sys.modules)
    """, JOULEDIFF_SPOOL="")
    assert out == "[0, 1, 2] False False\n" and got == []


def test_schedule():
    clock = iter([0.0, 0.5, 0.9, 1.3, 1.6]).__next__
    passes = _recording.schedule(("values", "trace"), 2, 1.5, clock=clock)
    assert list(passes) == [0, 1, 0, 0, 3, 3, 3, 3, 3]
    assert list(_recording.schedule(("trace",), 2, 0.0)) == [0, 0, 0, 3, 3]
    assert list(_recording.schedule(("replay",), 2, 0.0)) == [0]


def passes_of(shapes, steps=4):
    """The pass of each step of a program whose inputs have these shapes, one after the other."""
    coming = [None]
    plan = _recording.schedule(("values", "order", "trace", "replay"), steps, 0.0, lambda: coming[0],
                               clock=lambda: 0.0)
    made = []
    for coming[0] in shapes:
        made.append(next(plan, None))
    return made


def test_order_goes_on_while_new_shapes_come():
    made = passes_of("wv" + "aabbc" + "cabcabca" + "bc" + "abca" + "ba")
    assert made == [0, 1, *[2] * 13, 0, 0, 3, 3, 3, 3, 0, 4]
    assert passes_of("aa" + "aaab" + "aaa") == [0, 1, *[2] * 7]  # one that comes late
    assert passes_of(map(str, range(40)), 2)[:30] == [0, 1, *[2] * 24, 0, 0, 3, 3]  # a bound


def test_replay_waits_for_the_shapes_that_order_noted():
    assert passes_of("a" * 5 + "aa" + "abab" + "bba") == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 3, 0, 0, 4]
    assert passes_of("a" * 5 + "aa" + "bbbb" + "b")[-1] == 4  # they did not come again in the trace


COMPILED = """
    import time

    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

        def forward(self, x):
            return self.fc2(torch.nn.functional.gelu(self.fc1(x)))

    torch.manual_seed(0)
    model = Model().eval()
    compiled = torch.compile(model, backend="eager")
    x = torch.randn(4, 8)
    with torch.no_grad():
        for _ in range(60):
            y = compiled(x)
            time.sleep(0.01)
        print(torch.equal(y, model(x)))
"""


def test_a_compiled_program_has_the_steps_that_it_makes(tmp_path):
    [got], out = run(tmp_path / "a", COMPILED, JOULEDIFF_STEPS="10", JOULEDIFF_TRACE_SECONDS="5")
    assert out.startswith("True") and "record.recording_failed" not in got.diagnostics()
    assert got.passes()[:7] == [0, 1, 2, 2, 2, 0, 0] and len(got.passes()) <= 61
    assert len(got.operators) >= 3
