"""Whole recordings of JAX programs, in processes of their own, and a comparison with PyTorch."""

import numpy as np
import pytest

pytest.importorskip("jax")
from compared import compared, shares  # noqa: E402
from test_recording import PYTHON, Launcher, run  # noqa: E402

TRAIN = """
    import functools
    import jax
    import jax.numpy as jnp
    import joulediff.jax

    def loss(params, x, y):
        return ((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2).mean()

    @functools.partial(jax.jit, donate_argnums=0)
    def step(params, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    keys = jax.random.split(jax.random.key(0), 4)
    params = {"w1": jax.random.normal(keys[0], (8, 16)), "w2": jax.random.normal(keys[1], (16, 4))}
    x, y = jax.random.normal(keys[2], (32, 8)), jax.random.normal(keys[3], (32, 4))
    joulediff.jax.work("sample", 32)
    done = 0
    for _ in joulediff.jax.steps(15):
        before = params
        params, value = step(params, x, y)
        assert before["w1"].is_deleted()
        done += 1
    print(done, value, [float(p.sum()) for p in jax.tree.leaves(params)])
"""


def test_a_recorded_program_computes_the_same_bits(tmp_path):
    launcher = Launcher(tmp_path / "socket")
    [got], with_us = run(tmp_path / "a", TRAIN, JOULEDIFF_SOCKET=str(tmp_path / "socket"))
    nothing, without = run(tmp_path / "b", TRAIN, JOULEDIFF_SPOOL="")
    assert with_us == without and with_us.startswith("15 ") and nothing == []
    assert got.passes() == [0, 1, 2, 2, 2, 0, 0, 3, 3, 3, 4]
    assert got.times == 3 * len(got.operators) and got.tensors > len(got.operators)
    assert set(got.diagnostics()) == {"record.no_kernels", "record.eager_twin"}
    told = [line for line in launcher.lines if line[0] == "replay"]
    assert got.replays[0][0] == "joulediff.idle" and got.replays[1][3] == 3
    assert len(got.replays) == len(told) and any(r[0].startswith("jax.dot_general(") for r in got.replays)
    [manifest] = [f for topic, f in got.facts if topic == "manifest"]
    assert manifest["work_unit"] == "sample" and manifest["framework"].startswith("jax ")
    settings = got.settings()
    assert settings["jax.backend"] == "cpu" and settings["jax.enable_x64"] == "False"
    assert settings["jax.float32_matmul_precision"] == "highest" and "version.jaxlib" in settings
    assert not any("JOULEDIFF" in key for key in settings)


FORWARD = """
    import jax
    import jax.numpy as jnp

    prepare = jax.jit(lambda x: x - x.mean())

    @jax.jit
    def model(w, x):
        return jnp.tanh(x @ w)

    def main():
        w, x = jnp.eye(8) * 0.5, prepare(jnp.ones((4, 8)))
        for _ in range(20):
            x = model(w, x)
        return x

    def hand_written(w, x):
        return model(w, x)

    if __name__ == "__main__":
        print(main().sum(), model.lower(jnp.eye(8), jnp.ones((4, 8))).as_text().count("dot"))
"""


@pytest.mark.parametrize("region", ["", "__main__:model", "__main__:prepare"])
def test_steps_are_found_without_edits(tmp_path, region):
    got, with_us = run(tmp_path / "a", FORWARD, JOULEDIFF_REGION=region)
    _, without = run(tmp_path / "b", FORWARD, JOULEDIFF_SPOOL="")
    assert with_us == without
    if region == "__main__:prepare":  # called once: no loop of steps
        assert all(len(s.steps) <= 1 for s in got)
        return
    [spool] = got
    assert spool.passes()[:8] == [0, 1, 2, 2, 2, 0, 0, 3]
    assert set(spool.inputs[1:]) == {"float32[8,8], float32[4,8]"}
    assert {"jax.dot_general", "jax.tanh"} <= set(spool.operators.values())
    assert spool.settings()["jax.backend"] == "cpu"


def test_a_region_of_a_module_keeps_what_jit_has(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/model.py").write_text(
        "import jax\n\n\n@jax.jit\ndef step(x):\n    return x @ x\n\n\nclass Model:\n    call = jax.jit(lambda self, x: x * 2, static_argnums=0)\n")
    script = """
        import jax.numpy as jnp
        import model

        for _ in range(14):
            y = model.step(jnp.ones((4, 4)))
        model.step.clear_cache()
        print(y.sum(), model.Model().call(y).sum(), "dot" in model.step.lower(y).as_text())
    """
    [got], out = run(tmp_path / "a", script, JOULEDIFF_REGION="model:step")
    assert out == "64.0 128.0 True\n"
    assert got.passes()[:3] == [0, 1, 2] and "jax.dot_general" in got.operators.values()


def test_a_transformer_is_the_same_in_jax_and_in_pytorch(tmp_path, capsys):
    pair = str(PYTHON / "tests/jax_pair.py")
    told = compared(tmp_path, *((pair, framework, str(tmp_path / f"{framework}.npy")) for framework in ("jax", "torch")))
    assert np.allclose(np.load(tmp_path / "jax.npy"), np.load(tmp_path / "torch.npy"), rtol=1e-4, atol=1e-4)
    paired, ours, theirs = shares(told)
    with capsys.disabled():
        print(f"\n{len(paired)} regions; operators matched: JAX {ours:.0%}, PyTorch {theirs:.0%}")
    assert len(paired) >= 20 and min(ours, theirs) >= 0.9
    assert all(r["outputs_agree"] for r in paired if r["outputs_agree"] is not None)
