"""Which calls of which process are steps."""

import os
import subprocess
import sys
import textwrap

import torch

from joulediff import _abi, _host, _region
from joulediff._recording import Recording
from joulediff._replay import Replay
from recorder import Library
from test_recording import PYTHON, run


def test_a_data_loaders_transforms_are_no_steps(tmp_path):
    got, out = run(tmp_path / "a", """
        import torch

        class Data(torch.utils.data.Dataset):
            transform = torch.nn.ReLU()
            def __len__(self):
                return 40
            def __getitem__(self, i):
                return self.transform(torch.ones(4))

        model = torch.nn.Linear(4, 4)
        with torch.no_grad():
            for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
                model(batch)
    """, JOULEDIFF_PASSES="values,order,trace")
    [main] = [s for s in got if s.steps]
    assert main.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3]
    assert "aten.addmm.default" in main.operators.values()


def test_a_fork_in_the_middle_of_a_pass(tmp_path):
    """The child is rid of the parent's mode, and makes its own steps; neither disturbs the other."""
    got, out = run(tmp_path / "a", """
        import os, torch
        model, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
        with torch.no_grad():
            for step in range(11):
                model(x)
                if step == 1:  # values
                    child = os.fork()
                    if child == 0:
                        for _ in range(3):
                            model(x).exp()
                        os._exit(0)
                    assert os.waitpid(child, 0)[1] == 0
                x.add(1)
        print(child)
    """)
    by_pid = {s.process()["pid"]: s for s in got if s.steps}
    child = by_pid.pop(int(out))
    [parent] = by_pid.values()
    assert child.passes() == [0, 1, 2] and "trace" in child.diagnostics()["record.ended_early"]
    assert parent.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]
    assert child.process()["parent"] == parent.process()["pid"]
    assert "aten.exp.default" in child.operators.values()
    assert "aten.exp.default" not in parent.operators.values()
    assert "record.recording_failed" not in parent.diagnostics() | child.diagnostics()


def test_a_worker_says_which_one_it_is(tmp_path):
    """In words that are the same in every run: the parent's numbers, and the order of the starts."""
    got, out = run(tmp_path / "a", """
        import multiprocessing, os, torch

        def work():
            model = torch.nn.Linear(4, 4)
            for _ in range(3):
                model(torch.ones(2, 4))

        context = multiprocessing.get_context("fork")
        for _ in range(2):
            worker = context.Process(target=work)
            worker.start()
            print(worker.pid)
            worker.join()
        if os.fork() == 0:
            work()
            os._exit(0)
        os.wait()
    """, JOULEDIFF_PASSES="values")
    facts = {s.process()["pid"]: s.process() for s in got if s.steps}
    first, second = (facts.pop(int(pid)) for pid in out.split())
    [forked] = facts.values()
    assert [f["identity"] for f in (first, second, forked)] == [[1], [2], []]
    assert first["started"] <= second["started"] <= forked["started"] > 0


def test_a_process_that_is_done_says_so_but_for_one_at_its_end(monkeypatch):
    """One that ends by itself need not be ended by --stop."""
    told = []
    monkeypatch.setattr("joulediff._launcher.done", lambda: told.append(1))
    for leaving, said in ((True, 0), (False, 1)):
        library = Library()
        recording = Recording(_abi.Recorder(library))
        for _ in range(3):
            recording.step()
        recording.finish(whole=False, leaving=leaving)
        assert len(told) == said
        told.clear()
        [message] = [f["message"] for topic, f in library.facts if topic == "diagnostic"]
        assert message.startswith("the program ended" if leaving else "the program's loop ended")


def test_a_call_under_capture_is_no_step(monkeypatch):
    entered = []
    monkeypatch.setattr(_region, "_start", lambda framework: entered.append(framework))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    _region.enter()
    assert not entered
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    _region.enter()
    assert entered


def test_a_model_that_is_tried_out_in_one_thread_and_serves_in_another(tmp_path):
    [got], _ = run(tmp_path / "a", """
        import threading, torch
        model, x = torch.nn.Linear(4, 4), torch.ones(2, 4)

        def serve():
            for _ in range(10):
                model(x)

        with torch.no_grad():
            model(x)
        thread = threading.Thread(target=serve)
        thread.start()
        thread.join()
    """, JOULEDIFF_PASSES="values,order,trace")
    assert got.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3]


def test_ranks_are_told_by_who_started_them(monkeypatch):
    for names in _host.RANKS.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    assert not {"rank", "local_rank", "world_size"} & _host.process().keys()
    monkeypatch.setenv("SLURM_PROCID", "5")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    told = _host.process()
    assert (told["rank"], told["world_size"]) == (5, 8) and "local_rank" not in told
    monkeypatch.setenv("RANK", "1")  # torchrun under Slurm
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    told = _host.process()
    assert (told["rank"], told["local_rank"], told["world_size"]) == (1, 1, 2)
    assert told["pid"] == os.getpid() and told["parent"] == os.getppid() and told["argv"] == sys.argv


def recorded(steps, monkeypatch, passes):
    monkeypatch.setenv("JOULEDIFF_PASSES", passes)
    monkeypatch.setenv("JOULEDIFF_STEPS", "3")
    library = Library()
    recording = Recording(_abi.Recorder(library))
    for _ in range(steps):
        recording.step("float32[1]")
    return library


def test_a_profiler_in_the_program_is_told_once(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert "record.other_subscriber" not in recorded(9, monkeypatch, "trace").diagnostics()
    monkeypatch.setattr(torch.autograd.profiler, "_is_profiler_enabled", True)
    assert recorded(9, monkeypatch, "trace").diagnostics().count("record.other_subscriber") == 1


def test_steps_tell_the_shapes_of_their_inputs(monkeypatch):
    library = recorded(9, monkeypatch, "trace")
    assert {step[-1] for step in library.steps} == {b"float32[1]"} and len(library.steps) > 4


def test_one_process_replays_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setenv("JOULEDIFF_SPOOL", str(tmp_path))
    operators = {0: ("aten.exp.default", "exp", True)}
    libraries = [Library(), Library(), Library()]
    first, second, third = (Replay(_abi.Recorder(library), print, "/nowhere", operators)
                            for library in libraries)
    first.begin()
    second.begin()
    second.end()
    first.end()
    third.begin()
    third.end()
    told = ["record.replayed_elsewhere" in library.diagnostics() for library in libraries]
    assert told == [False, True, False]


def test_another_sitecustomize_before_ours(tmp_path):
    """Python looks for usercustomize, too, where it looks for a user's packages."""
    other, hidden = tmp_path / "other", tmp_path / "hidden"
    for folder, name in ((other, "site"), (hidden, "user")):
        folder.mkdir()
        (folder / f"{name}customize.py").write_text(f"import sys; sys.{folder.name} = True")
    inject = PYTHON / "joulediff/inject"
    program = textwrap.dedent("""
        import site, sys
        print(site.ENABLE_USER_SITE, sys.other, "joulediff._region" in sys.modules,
              getattr(sys, "hidden", False))
    """)
    env = {"PATH": os.environ["PATH"], "JOULEDIFF_SPOOL": str(tmp_path),
           "PYTHONPATH": os.pathsep.join(map(str, (other, inject, hidden)))}
    python = getattr(sys, "_base_executable", sys.executable)  # a virtual environment has no user's
    done = subprocess.run([python, "-c", program], env=env, capture_output=True, text=True, check=True)
    enabled, *rest = done.stdout.split()
    assert rest == (["True"] * 3 if enabled == "True" else ["True", "False", "False"]), done.stderr
