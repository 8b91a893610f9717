"""The values pass of JAX, in this process: what it sees, and that the program does not notice."""

import collections
import functools
import inspect
import math
import pickle

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from jax_passes import piecewise, values_of  # noqa: E402
from jax_programs import tokens, train_step, transformer, weights  # noqa: E402
from joulediff import _abi, _jax_region, _jax_twin  # noqa: E402


def same(one, other):
    leaves = [np.asarray(a) for a in jax.tree.leaves(one)]
    others = [np.asarray(a) for a in jax.tree.leaves(other)]
    return len(leaves) == len(others) and all(np.array_equal(a, b) for a, b in zip(leaves, others, strict=True))


def rms(library, value):
    return library.tensors[value].fingerprint.rms


def test_a_jitted_function_is_seen_and_computes_the_same():
    function = jax.jit(lambda x, w: jnp.tanh(x @ w).sum(-1))
    x, w = jnp.linspace(-1, 1, 32).reshape(4, 8), jnp.linspace(0, 2, 64).reshape(8, 8)
    want = function(x, w)
    got, library = values_of(lambda: function(x, w))
    assert same(want, got)
    [product] = library.named("jax.dot_general")
    assert [library.shape(v) for v in product.inputs] == [(4, 8), (8, 8)]
    assert rms(library, product.outputs[0]) == pytest.approx(float(jnp.sqrt(jnp.mean((x @ w) ** 2))), rel=1e-5)
    [made] = library.operators[max(library.operators)].outputs
    assert rms(library, made) == pytest.approx(float(np.sqrt(np.mean(np.asarray(want) ** 2))), rel=1e-5)


def test_what_two_computations_hand_on_is_one_value():
    first, second = jax.jit(lambda x: x * 2), jax.jit(lambda x: jnp.exp(x))
    x = jnp.arange(5.0)
    _, library = values_of(lambda: second(first(x)) + x)
    one, two, three = library.operators.values()
    assert one.outputs == two.inputs and set(three.inputs) == {*two.outputs, *one.inputs}


def test_nested_functions_stand_where_they_are_called():
    @jax.jit
    def inner(x):
        return jnp.sin(x) * 3

    @jax.jit
    def outer(x, y):
        return (inner(x) @ x.T, inner(y) @ y.T)  # traced once, called twice

    inner(jnp.ones((4, 4)))  # and the first time from here
    _, library = values_of(lambda: outer(jnp.ones((4, 4)), jnp.ones((4, 4))))
    stacks = {f["id"]: f["frames"] for topic, f in library.facts if topic == "stack"}
    for operator in library.named("jax.fusion"):
        functions = [f[2].split(".")[-1] for f in stacks[operator.facts["stack"]]]
        assert functions[:3] == ["inner", "outer", "<lambda>"], functions
    assert len(library.named("jax.dot_general")) == 2


def test_scan_is_unrolled_and_its_slices_are_views():
    def body(carry, x):
        carry = jnp.tanh(carry @ x["w"]) + x["b"]
        return carry, carry.sum()

    function = jax.jit(lambda c, xs: jax.lax.scan(body, c, xs, reverse=True))
    xs = {"w": jnp.stack([jnp.eye(4) * i for i in range(3)]), "b": jnp.arange(12.0).reshape(3, 4)}
    start = jnp.ones((2, 4))
    want = function(start, xs)
    got, library = values_of(lambda: function(start, xs))
    assert same(want, got)
    products = library.named("jax.dot_general")
    assert len(products) == 3
    slices = [o for o in library.operators.values() if o.name == "jax.dynamic_slice"]
    assert len(slices) == 6 and all(o.view for o in slices)
    assert [o.facts["arguments"]["scan"] for o in slices[::2]] == [2, 1, 0]
    weight = library.tensors[products[0].inputs[1]]
    assert weight.offset == 2 * 16 and weight.fingerprint.max == 2.0  # the last one is read first
    assert weight.role == library.tensors[slices[0].inputs[0]].role
    [stack] = library.named("jax.dynamic_update_slice")
    assert library.shape(stack.outputs[0]) == (3,)
    assert rms(library, stack.outputs[0]) == pytest.approx(float(jnp.sqrt((want[1] ** 2).mean())), rel=1e-5)


@pytest.mark.parametrize("x", [2.0, -2.0])
def test_of_a_cond_the_branch_that_is_taken(x):
    function = jax.jit(lambda p, x: jax.lax.cond(p, lambda x: jnp.sin(x), lambda x: jnp.cos(x), x))
    got, library = values_of(lambda: function(x > 0, jnp.float32(x)))
    assert same(function(x > 0, jnp.float32(x)), got)
    assert len(library.named("jax.sin")) == (x > 0) and len(library.named("jax.cos")) == (x < 0)


def test_a_while_makes_as_many_trips_as_it_takes():
    function = jax.jit(lambda x: jax.lax.while_loop(lambda x: x.sum() < 100, lambda x: jnp.exp2(x) + 1, x))
    got, library = values_of(lambda: function(jnp.zeros(3)))
    assert same(function(jnp.zeros(3)), got)
    trips, x = 0, np.zeros(3)
    while x.sum() < 100:
        x, trips = np.exp2(x) + 1, trips + 1
    made = [o for o in library.operators.values() if "jax.exp2" in str((o.name, o.facts["arguments"]))]
    assert trips > 2 and len(made) == trips


def test_a_loop_that_is_too_long_is_one_operator(monkeypatch):
    monkeypatch.setattr(_jax_twin, "MOST_RECORDS", 20)
    function = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, x: jnp.sin(x) + i, x))
    got, library = values_of(lambda: function(jnp.ones(3)))
    assert same(function(jnp.ones(3)), got) and "record.long_loop" in library.diagnostics()
    assert len(library.named("jax.scan")) + len(library.named("jax.while")) == 1
    last = library.operators[max(library.operators)]
    assert rms(library, last.outputs[0]) == pytest.approx(float(jnp.sqrt((got**2).mean())), rel=1e-5)


def test_vmap_is_gone_and_grad_is_backward():
    def one(w, x):
        return jnp.tanh(x @ w).sum()

    function = jax.jit(jax.grad(lambda w, xs: jax.vmap(one, (None, 0))(w, xs).sum()))
    w, xs = jnp.eye(4), jnp.linspace(0, 1, 24).reshape(6, 4)
    got, library = values_of(lambda: function(w, xs))
    assert same(function(w, xs), got)
    forward, backward = library.named("jax.dot_general")
    assert library.shape(forward.inputs[0]) == (6, 4) and forward.facts["phase"] == "forward"
    assert backward.facts["phase"] == "backward" and backward.facts["forward"] == forward.index
    assert backward.facts["stack"] == forward.facts["stack"]


def test_remat_computes_again():
    def block(w, x):
        return jnp.sin(x @ w)

    def run(wrap):
        function = jax.jit(jax.grad(lambda w, x: wrap(block)(w, wrap(block)(w, x)).sum()))
        got, library = values_of(lambda: function(jnp.eye(8), jnp.ones((4, 8))))
        return got, len(library.named("jax.dot_general"))

    (plain, few), (again, many) = run(lambda f: f), run(jax.checkpoint)
    assert np.allclose(plain, again, rtol=1e-5) and many > few


def test_pytrees_keywords_and_static_arguments():
    @functools.partial(jax.jit, static_argnames=("power",))
    def step(params, x, *, power, scale):
        return {"y": (x @ params["w"] + params["b"]) ** power * scale}

    params, x = {"w": jnp.eye(4), "b": jnp.ones(4)}, jnp.arange(8.0).reshape(2, 4)

    def run():
        return step(params, x, power=3, scale=jnp.float32(2))

    want = run()
    got, library = values_of(run)
    assert same(want, got)
    roles = collections.Counter((library.shape(v), t.role) for v, t in library.tensors.items())
    assert roles[(4, 4), _abi.PARAMETER] == roles[(4,), _abi.PARAMETER] == 1
    assert roles[(2, 4), _abi.INPUT] == roles[(), _abi.INPUT] == 1


def test_a_donated_buffer_is_given_away_and_read_before():
    step = jax.jit(lambda state, x: state * 0.5 + x, donate_argnums=0)
    states = [jnp.arange(4.0), jnp.arange(4.0)]
    want = step(states[0], jnp.ones(4))
    got, library = values_of(lambda: step(states[1], jnp.ones(4)))
    assert same(want, got) and states[0].is_deleted() and states[1].is_deleted()
    operator = library.operators[max(library.operators)]
    assert max(rms(library, v) for v in operator.inputs) == pytest.approx(math.sqrt(3.5))


def test_callbacks_run_once():
    heard = []

    def look(x):
        heard.append(("pure", float(x.sum())))
        return np.asarray(x) * 10

    def draw():
        heard.append(("io", None))
        return np.float32(len(heard))

    @jax.jit
    def function(x):
        y = jax.pure_callback(look, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.sin(x))
        z = jax.experimental.io_callback(draw, jax.ShapeDtypeStruct((), np.float32), ordered=True)
        jax.debug.callback(lambda v: heard.append(("debug", None)), y)
        return jnp.cos(y) + z

    from jax.experimental import io_callback  # noqa: F401

    function(jnp.ones(3))
    jax.effects_barrier()
    before = collections.Counter(what for what, _ in heard)
    heard.clear()
    got, library = values_of(lambda: function(jnp.ones(3)))
    assert collections.Counter(what for what, _ in heard) == before
    [pure] = library.named("jax.pure_callback")
    assert rms(library, pure.outputs[0]) == pytest.approx(10 * math.sin(1), rel=1e-5)
    last = library.operators[max(library.operators)]
    assert rms(library, last.outputs[0]) == pytest.approx(float(jnp.sqrt((got**2).mean())), rel=1e-5)


def test_random_keys_are_values():
    function = jax.jit(lambda key: jax.random.normal(jax.random.split(key)[1], (8,)))
    key = jax.random.key(3)
    want = function(key)
    got, library = values_of(lambda: function(key))
    assert same(want, got)
    last = library.operators[max(library.operators)]
    assert rms(library, last.outputs[0]) == pytest.approx(float(jnp.sqrt((want**2).mean())), rel=1e-5)


def test_numbers_and_arrays_of_numpy_go_in():
    function = jax.jit(lambda x, n: x * n + 1)
    got, library = values_of(lambda: function(np.arange(6.0), 3))
    assert same(function(np.arange(6.0), 3), got)
    [operator] = library.operators.values()
    assert rms(library, operator.outputs[0]) == pytest.approx(math.sqrt(float(np.mean(np.square(got)))))


def test_eager_operations_are_seen_where_they_are():
    def here():
        return jnp.where(jnp.arange(4) > 1, 1.0, 0.0) @ jnp.ones(4)

    want = here()
    got, library = values_of(here)
    assert same(want, got)
    stacks = {f["id"]: f["frames"] for topic, f in library.facts if topic == "stack"}
    [product] = library.named("jax.dot_general")
    assert stacks[product.facts["stack"]][0][2].endswith("here")


def test_afterwards_the_program_is_as_fast_as_before(monkeypatch):
    from jax._src import pjit

    function = jax.jit(lambda x: jnp.sin(x) + 1)
    x = jnp.ones(3)
    function(x)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None)
    values_of(lambda: None)  # clears and restores
    compiled.clear()
    original, calls = pjit._pjit_call_impl_python, []
    monkeypatch.setattr(pjit, "_pjit_call_impl_python",
                        lambda *args, **params: calls.append(params["name"]) or original(*args, **params))
    for _ in range(3):
        function(x)
    assert len(calls) == 1 and not compiled


def test_a_mistake_of_ours_leaves_the_program_alone(monkeypatch):
    from joulediff import _jax_passes
    from recorder import Library

    errors = []
    function = jax.jit(lambda x: x * 2)
    monkeypatch.setattr(_jax_twin.Twin, "run", lambda *_: 1 / 0)
    values = _jax_passes.Values(_abi.Recorder(Library()), errors.append)
    values.begin()
    got = [function(jnp.ones(2)), function(jnp.ones(2))]
    values.end()
    assert same(got, [jnp.full(2, 2.0)] * 2)
    assert [type(e) for e in errors] == [ZeroDivisionError]


@pytest.mark.parametrize("program", ["forward", "train"])
def test_the_operators_alone_make_what_the_program_makes(program):
    params, ids = jax.tree.map(jnp.asarray, weights()), jnp.asarray(tokens())
    if program == "forward":
        function = functools.partial(jax.jit(transformer), params, ids)
    else:
        function = functools.partial(jax.jit(train_step), params, jax.tree.map(jnp.zeros_like, params), ids)
    want = function()
    got, pairs, operators = piecewise(function)
    assert same(want, got) and len(operators) > 50
    for twin, alone in pairs:
        assert np.allclose(twin, alone, rtol=1e-3, atol=1e-4)
    leaves = [np.asarray(a) for a in jax.tree.leaves(want)]
    made = [np.asarray(alone) for _, alone in pairs]
    for leaf in leaves:
        assert any(m.shape == leaf.shape and np.allclose(m, leaf, rtol=1e-3, atol=1e-4) for m in made)


def test_a_training_step_has_its_phases():
    params, ids = jax.tree.map(jnp.asarray, weights()), jnp.asarray(tokens())
    step = jax.jit(train_step, donate_argnums=(0, 1))
    momentum = jax.tree.map(jnp.zeros_like, params)
    copies = jax.tree.map(jnp.copy, (params, momentum))
    want = step(*copies, ids)
    got, library = values_of(lambda: step(params, momentum, ids))
    assert same(want, got) and params["wte"].is_deleted()
    phases = collections.Counter(o.facts["phase"] for o in library.named("jax.dot_general"))
    assert phases["forward"] == 13 and phases["backward"] == 26
    assert all(o.facts["forward"] < o.index for o in library.named("jax.dot_general") if "forward" in o.facts)


def test_a_watched_function_is_the_function():
    calls = []

    def called(_watched, inner, args, kwargs):
        calls.append(args)
        return inner(*args, **kwargs)

    def double(x, *, by=2):
        """Doubles."""
        return x * by

    jitted = jax.jit(double, static_argnames="by")
    watched = _jax_region.Watched(jitted, called)
    assert same(watched(jnp.ones(2), by=3), jnp.full(2, 3.0)) and len(calls) == 1
    assert watched.__name__ == "double" and watched.__doc__ == "Doubles."
    assert inspect.signature(watched) == inspect.signature(jitted)
    assert "mul" in watched.lower(jnp.ones(2)).as_text() or "multiply" in watched.lower(jnp.ones(2)).as_text()
    assert watched.trace(jnp.ones(2)).jaxpr.eqns and watched.eval_shape(jnp.ones(2)).shape == (2,)
    watched.clear_cache()
    assert jax.jit(watched)(jnp.ones(2)).shape == jax.vmap(watched)(jnp.ones(2)).shape == (2,)
    assert pickle.loads(pickle.dumps(watched.__wrapped__ is double))

    class Model:
        step = _jax_region.Watched(jax.jit(lambda self, x: x + 1, static_argnums=0), called)

    assert same(Model().step(jnp.ones(2)), jnp.full(2, 2.0))


def test_the_shapes_of_a_step_are_told_shortly():
    from joulediff._inputs import text_of

    params = {f"w{i}": jnp.ones((2, 3)) for i in range(20)}
    args, kwargs = _jax_region._inputs((params, jnp.ones((4, 2), jnp.int32)), {"key": jax.random.key(0)})
    assert text_of(args, kwargs) == "arrays[20], int32[4,2], key=key<fry>[]"
