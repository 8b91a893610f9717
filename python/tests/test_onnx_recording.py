"""Whole recordings of programs of ONNX Runtime, in processes of their own, and comparisons with PyTorch."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from compared import compared, shares  # noqa: E402
from onnx_programs import export, graph, network  # noqa: E402
from test_recording import PYTHON, Launcher, run  # noqa: E402

RANDOM = np.random.default_rng(0)
PERCEPTRON = [("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["r"], {}), ("MatMul", ["r", "v"], ["y"], {})]


def perceptron(width=32):
    weights = {n: RANDOM.standard_normal((width, width)).astype(np.float32) / 8 for n in "wv"}
    return graph(PERCEPTRON, {"x": ("float", ["n", width])}, {"y": ("float", ["n", width])}, weights)


PLAIN = """
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])
    x = np.linspace(-1, 1, 8 * 32, dtype=np.float32).reshape(8, 32)
    for _ in range(20):
        [x] = session.run(["y"], {"x": x})
    print(x.tobytes().hex())
"""


def folder(path, **models):
    path.mkdir()
    for name, data in models.items():
        (path / f"{name}.onnx").write_bytes(data)
    return path


def test_a_recorded_program_computes_the_same_bits(tmp_path):
    launcher, model = Launcher(tmp_path / "socket"), perceptron()
    [got], with_us = run(folder(tmp_path / "a", model=model), PLAIN, JOULEDIFF_SOCKET=str(tmp_path / "socket"))
    nothing, without = run(folder(tmp_path / "b", model=model), PLAIN, JOULEDIFF_SPOOL="")
    assert with_us == without and len(without) > 100 and nothing == []
    assert got.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]
    assert set(got.inputs[1:]) == {"x=float32[8,32]"}
    names = set(got.operators.values())
    assert "onnx.MatMul" in names and got.times == 3 * len(got.operators) and got.tensors > len(got.operators)
    assert set(got.diagnostics()) == {"record.no_kernels", "record.eager_twin"}
    told = [line for line in launcher.lines if line[0] == "replay"]
    assert got.replays[0][0] == "joulediff.idle" and len(got.replays) == len(told)
    assert any(r[0].startswith("onnx.MatMul([8,32]") and r[3] >= 3 for r in got.replays)
    [manifest] = [f for topic, f in got.facts if topic == "manifest"]
    assert manifest["framework"].startswith("onnxruntime ")
    settings = got.settings()
    assert settings["onnxruntime.intra_op_num_threads"] == "1" and "version.onnxruntime" in settings
    assert settings["onnxruntime.graph_optimization_level"] == "ORT_ENABLE_ALL"
    assert settings["onnxruntime.providers"] == "CPUExecutionProvider"
    [stack] = [f["frames"] for topic, f in got.facts if topic == "stack"]
    assert stack[0] == ["program.py", 10, "<module>"]


TWO = """
    import numpy as np
    import onnxruntime
    import sys

    def made(name, level):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = level
        return onnxruntime.InferenceSession(name, options, providers=["CPUExecutionProvider"])

    encoder = made("encoder.onnx", onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    decoder = made("decoder.onnx", onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)

    def request(x):
        [state] = encoder.run(None, {"x": x})
        for n in range(1, 4):  # a cache that grows
            [y] = decoder.run(None, {"x": state[:n]})
        return y

    for _ in range(16):
        y = request(np.ones((4, 32), np.float32))
    print(y.tobytes().hex())
"""


def test_a_request_of_several_sessions_is_a_step(tmp_path):
    models = {"encoder": perceptron(), "decoder": perceptron()}
    [got], with_us = run(folder(tmp_path / "a", **models), TWO, JOULEDIFF_REGION="__main__:request")
    _, without = run(folder(tmp_path / "b", **models), TWO, JOULEDIFF_SPOOL="")
    assert with_us == without and got.passes()[:5] == [0, 1, 2, 2, 2] and len(got.passes()) == 11
    assert set(got.inputs[1:]) == {"float32[4,32]"}
    assert list(got.operators.values()).count("onnx.MatMul") == 8
    assert got.settings()["onnxruntime.graph_optimization_level"] == "ORT_ENABLE_ALL,ORT_ENABLE_BASIC"
    assert "record.recording_failed" not in got.diagnostics()


def test_without_a_region_it_is_the_session_that_is_run_twice(tmp_path):
    [got], _ = run(folder(tmp_path / "a", encoder=perceptron(), decoder=perceptron()), TWO)
    assert got.passes()[:3] == [0, 1, 2] and got.inputs[1] in ("x=float32[2,32]", "x=float32[3,32]")
    assert len(set(got.inputs[1:])) == 3  # the decoder's cache
    assert "record.recording_failed" not in got.diagnostics()


def test_steps_that_the_program_marks(tmp_path):
    script = PLAIN.replace("for _ in range(20):", "import joulediff.onnx\n    joulediff.onnx.work('row', 8)\n"
                           "    for _ in joulediff.onnx.steps(12):")
    [got], _ = run(folder(tmp_path / "a", model=perceptron()), script)
    assert got.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]
    [manifest] = [f for topic, f in got.facts if topic == "manifest"]
    assert manifest["work_unit"] == "row" and "onnx.MatMul" in got.operators.values()


def test_a_runtime_with_other_insides_is_told(tmp_path):
    place = folder(tmp_path / "a")
    (place / "onnxruntime.py").write_text(
        "class InferenceSession:\n    def __init__(self, name): pass\n    def run(self, names, feed): return [feed]\n")
    script = """
        import onnxruntime
        session = onnxruntime.InferenceSession("model.onnx")
        print([session.run(None, i) for i in range(8)])
    """
    got, out = run(place, script)
    assert out == f"{[[i] for i in range(8)]}\n"
    [spool] = got
    assert "ONNX Runtime  has no" in spool.diagnostics()["record.recording_failed"] and spool.steps == []


def test_runs_in_several_threads(tmp_path):
    script = PLAIN.replace("for _ in range(20):\n        [x] = session.run([\"y\"], {\"x\": x})", """
    import threading
    def work(first):
        for _ in range(20):
            first = session.run(None, {"x": first})[0]
    others = [threading.Thread(target=work, args=(x,)) for _ in range(2)]
    [t.start() for t in others], work(x), [t.join() for t in others]
""")
    assert "threading" in script
    [got], _ = run(folder(tmp_path / "a", model=perceptron()), script)
    assert "record.recording_failed" not in got.diagnostics() and got.passes()[:2] == [0, 1]


# The normalisation of a convolutional network allocates what it does not use.
EMPTY = ("aten.empty.memory_format",)


@pytest.mark.parametrize(("name", "level", "dynamo"), [
    ("transformer", "ORT_ENABLE_ALL", True), ("transformer", "ORT_ENABLE_ALL", False),
    ("transformer", "ORT_DISABLE_ALL", False), ("convolutions", "ORT_ENABLE_ALL", False),
    ("convolutions", "ORT_DISABLE_ALL", False)])
def test_a_network_is_the_same_in_onnxruntime_and_in_pytorch(tmp_path, capsys, name, level, dynamo):
    model, pair = str(tmp_path / "model.onnx"), str(PYTHON / "tests/onnx_pair.py")
    export(name, model, dynamo)
    np.save(model + ".npy", network(name)[1].numpy())
    told = compared(tmp_path, (pair, level, name, str(tmp_path / "onnx.npy"), model),
                    (pair, "torch", name, str(tmp_path / "torch.npy")))
    assert np.allclose(np.load(tmp_path / "onnx.npy"), np.load(tmp_path / "torch.npy"), rtol=1e-4, atol=1e-4)
    paired, ours, theirs = shares(told, EMPTY)
    with capsys.disabled():
        print(f"\n{name}, {level}: {len(paired)} regions; operators matched: ONNX Runtime {ours:.1%}, "
              f"PyTorch {theirs:.1%}")
    assert len(paired) >= 8 and min(ours, theirs) >= 0.95
    assert all(r["outputs_agree"] for r in paired if r["outputs_agree"] is not None)
