"""Which equations a kernel stands for: the reader of HLO, and the numbers that equations are given."""

import json
import os

import subprocess
import sys
import textwrap


import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from joulediff import _jax_hlo, _jax_plan  # noqa: E402
from test_fingerprint import CASES, assert_same, build  # noqa: E402
from test_recording import PYTHON, library  # noqa: E402

TEXT = """\
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%fused_computation.1 (param_0: f32[4], param_1: (s32[], f32[4])) -> f32[4] {
  %param_0 = f32[4]{0} parameter(0)
  %bitcast.1 = f32[4]{0} bitcast(%param_0), metadata={op_name="jit(f)/jd9/reshape"}
  %mul.2 = f32[4]{0} multiply(%bitcast.1, %bitcast.1), metadata={op_name="jit(f)/jd2/mul" stack_frame_id=3}
  ROOT %add.3 = f32[4]{0} add(%mul.2, %param_0), metadata={op_name="jit(f)/jd1/jit(g)/jd3/add"}
}

%body (arg: (s32[], f32[4])) -> (s32[], f32[4]) {
  %arg = (s32[], f32[4]{0}) parameter(0)
  %gte = f32[4]{0} get-tuple-element(%arg), index=1
  %count = s32[] get-tuple-element(%arg), index=0
  %loop_fusion.7 = f32[4]{0} fusion(%gte), kind=kLoop, calls=%fused_computation.1, metadata={op_name="jit(f)/jd3/add"}
  %next = s32[] add(%count, %count), metadata={op_name="jit(f)/jd4/while/body/add"}
  ROOT %both = (s32[], f32[4]{0}) tuple(%next, %loop_fusion.7)
}

%test (arg.1: (s32[], f32[4])) -> pred[] {
  %arg.1 = (s32[], f32[4]{0}) parameter(0)
  ROOT %lt.4 = pred[] compare(%arg.1, %arg.1), direction=LT, metadata={op_name="jit(f)/jd4/while/cond/lt"}
}

ENTRY %main.9 (x.1: f32[4]) -> f32[4] {
  %x.1 = f32[4]{0} parameter(0), metadata={op_name="x[\\'a\\']"}
  %custom-call.5 = (f32[4]{0}, s8[32]{0}) custom-call(%x.1), custom_call_target="__cublas$gemm", metadata={op_name="jit(f)/jd5/dot_general"}, backend_config={"a":"calls=%no"}
  %while.2 = (s32[], f32[4]{0}) while(%custom-call.5), condition=%test, body=%body, metadata={op_name="jit(f)/jd4/while"}
  ROOT %out = f32[4]{0} get-tuple-element(%while.2), index=1
}
"""


def test_the_reader_finds_kernels_and_their_equations():
    kernels = _jax_hlo.kernels(TEXT)
    assert [(k.kernel, k.opcode, k.own, sorted(k.equations)) for k in kernels] == [
        ("custom_call_5", "custom-call", 5, [5]), ("lt_4", "compare", 4, [4]),
        ("loop_fusion_7", "fusion", 3, [2, 3]), ("next", "add", 4, [4])]
    assert kernels[0].shape == "(f32[4]{0}, s8[32]{0})"
    assert _jax_hlo.kernels("not HLO\n{\n}") == [] and _jax_hlo.read("")[1] is None


def compiled_text(function, *args):
    return jax.jit(function).trace(*args), jax.jit(function).lower(*args).compile().as_text()


def test_numbers_change_no_instruction():
    def function(x, w):
        return jax.lax.scan(lambda c, w: (jnp.tanh(c @ w) + 1, c.sum()), x, w)

    args = jnp.ones((4, 8)), jnp.ones((3, 8, 8))
    traced, text = compiled_text(function, *args)
    numbers = _jax_hlo.Numbered(traced.jaxpr)
    again = jax.jit(jax.core.jaxpr_as_fun(numbers.jaxpr) if hasattr(jax.core, "jaxpr_as_fun")
                    else jax.extend.core.jaxpr_as_fun(numbers.jaxpr)).lower(*args).compile().as_text()
    plain, marked = _jax_hlo.kernels(text), _jax_hlo.kernels(again)
    assert _jax_hlo.same(plain, marked) and not any(k.equations for k in plain)
    [product] = [k for k in marked if "dot" in again.split(k.name + " =")[1].split("metadata")[0] or
                 k.own in {n for n, e in _by_number(numbers).items() if e.primitive.name == "dot_general"}]
    names = {n: e.primitive.name for n, e in _by_number(numbers).items()}
    assert names[product.own] == "dot_general"
    made = {names[n] for k in marked for n in k.equations}
    assert {"dot_general", "tanh", "add", "reduce_sum", "scan"} <= made and len(numbers.loops) == 1
    plan = _jax_plan.plan(traced.jaxpr, text, lambda closed: again)
    assert plan.numbers is not None and plan.loop_kernels


def _by_number(numbers):
    return {numbers.number_of(e): e for e in numbers._kept}


def test_another_computation_is_not_taken_for_it():
    traced, text = compiled_text(lambda x: jnp.sin(x) + 1, jnp.ones(4))
    _, other = compiled_text(lambda x: jnp.sin(x).sum(), jnp.ones(4))
    plan = _jax_plan.plan(traced.jaxpr, text, lambda closed: other)
    assert plan.numbers is None and plan.groups_of(1) == frozenset()


def test_fingerprints_are_those_of_every_producer(tmp_path):
    """The library's, of arrays as JAX holds them; in a process of its own, where recording is on."""
    cases = tmp_path / "cases"
    cases.mkdir()
    for i, case in enumerate(CASES):
        x = build(case)
        raw = x.contiguous().view(-1).view(__import__("torch").uint8) if x.numel() else None
        (cases / f"{i}.bin").write_bytes(b"" if raw is None else raw.numpy().tobytes())
    program = textwrap.dedent("""
        import ctypes, json, pathlib, sys
        import jax, ml_dtypes, numpy as np
        jax.config.update("jax_enable_x64", True)
        from joulediff import _abi, _jax_twin, _jax_values
        from joulediff._memory import Observer
        cases, names = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
        recorder, told = _abi.load(), []
        observe, tensor = recorder.observe, recorder.tensor
        class Keeping:
            def observe(self, info, data):
                observe(info, data); told.append(info._obj)
            def tensor(self, info):
                tensor(info); told.append(info._obj)
        for i, (dtype, shape) in enumerate(names):
            kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
            array = np.frombuffer((cases / f"{i}.bin").read_bytes(), kind).reshape(shape)
            array = jax.numpy.asarray(array)
            assert array.dtype == kind
            Observer(Keeping(), _jax_values.host)(_jax_twin.value_of(array, _abi.INPUT))
        fields = ("count nan positive_infinity negative_infinity distinct dtype mean mean_abs rms l4 m3 min max "
                  "own bf16 fp16").split()
        print(json.dumps([{f: list(v) if hasattr(v := getattr(t.fingerprint, f), "_length_") else v
                           for f in fields} for t in told]))
    """)
    kinds = {"boolean": "bool", "float8_e4m3": "float8_e4m3fn"}
    names = [(kinds.get(c["dtype"], c["dtype"]), c["shape"]) for c in CASES]
    env = {**os.environ, "PYTHONPATH": str(PYTHON), "JOULEDIFF_SPOOL": str(tmp_path), "JOULEDIFF_LIBRARY": library()}
    done = subprocess.run([sys.executable, "-c", program, str(cases), json.dumps(names)], env=env, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for case, got in zip(CASES, json.loads(done.stdout), strict=True):
        assert got["dtype"] == case["code"], case["name"]
        assert_same(type("Fingerprint", (), got), case["expected"])


