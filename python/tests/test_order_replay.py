"""Order and replay: numbering, triton launches, the choice of operators, clones, the floor."""

import sys
import threading
import types

import pytest
import torch

from joulediff import _abi, _executions, _measure, _operator
from joulediff._mode import OperatorMode
from joulediff._order import Order
from joulediff._values import Values
from recorder import Library, check, record_values


def recorded(kind, function, *args):
    library, errors = Library(), []
    mode = kind(_abi.Recorder(library), errors.append, *args)
    mode.begin()
    try:
        function()
    finally:
        mode.end()
    assert errors == []
    return library, mode


def program():
    layer = torch.nn.Linear(4, 4)
    x = torch.ones(2, 4)

    def run():
        layer.zero_grad()
        y = layer(x)
        y[:, 1:].relu_()
        y.sum().backward()
        with torch.inference_mode():
            layer(x)

    return run


def test_order_numbers_as_values_do():
    run = program()
    run()
    library = record_values(run)
    heard, order = recorded(Order, run)
    names = {i: o.name for i, o in library.operators.items()}
    assert {i: name for i, (name, _, _) in order.operators.items()} == names
    assert [(i, name) for _, i, name in heard.brackets] == sorted(names.items())
    assert heard.depth == 0
    for i, (_, signature, moves) in order.operators.items():
        assert signature == library.operators[i].facts["signature"]
        assert moves is not library.operators[i].view


def test_an_operator_that_fails_closes_its_bracket():
    def run():
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)

    heard, _ = recorded(Order, run)
    assert heard.depth == 0 and heard.brackets[-1][2] == "aten.mm.default"


class JITFunction:
    """As triton has it: run(*args, grid, warmup, **options)."""

    def __init__(self, function, names):
        self.fn, self.__name__, self.arg_names = function, function.__name__, names

    def run(self, *args, grid, warmup, **kwargs):
        assert callable(grid) or isinstance(grid, tuple)
        return None if warmup else self.fn(*args, **kwargs)


@pytest.fixture
def kernel(monkeypatch):
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["triton.runtime.jit"].JITFunction = JITFunction

    def add_one(x, out, n):
        out.numpy()[:] = x.numpy() + 1  # not through the dispatcher

    return JITFunction(add_one, ["x", "out", "n"])


def test_triton_launches(kernel):
    x, out, again = torch.randn(4), torch.zeros(4), None
    original = JITFunction.run

    def run():
        nonlocal again
        again = torch.empty(4)
        kernel.run(x, out, 4, grid=(1,), warmup=False)
        kernel.run(x, again, 4, grid=(1,), warmup=False)
        out.exp()

    library, _ = recorded(Values, run)
    check(library)
    first, second = library.named("triton.add_one")
    assert len(first.inputs) == 2 and len(first.outputs) == 1
    assert first.facts["arguments"] == {"n": 4, "grid": [1]}
    assert library.named("aten.exp.default")[0].inputs == first.outputs
    assert len(second.inputs) == 1 and len(second.outputs) == 1  # fresh memory is not read
    assert not first.view and JITFunction.run is original

    heard, order = recorded(Order, run)
    assert [name for _, _, name in heard.brackets] == [
        "aten.empty.memory_format", "triton.add_one", "triton.add_one", "aten.exp.default"]
    assert order.operators[1][1] == first.facts["signature"]


def test_choose_takes_what_makes_up_the_time():
    operators = {0: ("a", "a()", True), 1: ("b", "b()", True), 2: ("b", "b()", True),
                 3: ("v", "v()", False), 4: ("c", "c()", True)}
    seconds = {0: 0.5, 1: 1.0, 2: 1.0, 3: 9.0, 4: 0.01}
    assert _measure.choose(operators, seconds.get) == {"b()": 1, "a()": 0}
    assert _measure.choose(operators, lambda _: -1.0) == {}


def test_clones_keep_layout_and_sharing():
    base = torch.randn(6, 8)
    args = [base[1:3].t(), [base[2], torch.randn(3)], 7]
    copies = _executions.spans(_operator.tensors_in(args))
    new = _executions.clone(args, copies)
    assert torch.equal(new[0], args[0]) and new[0].stride() == args[0].stride()
    assert torch.equal(new[1][1], args[1][1]) and new[2] == 7
    new[1][0].fill_(0)
    assert new[0].sum() == args[0][:, 0].sum() and base[2].abs().sum() > 0  # one storage, not base's
    assert new[0].untyped_storage().nbytes() < base.untyped_storage().nbytes()


def test_a_mode_above_ours_stays(tmp_path):
    class Other(OperatorMode):
        def around(self, index, form, function, args, kwargs):
            return function(*args, **kwargs)

    ours, other = Order(_abi.Recorder(Library()), print), Other(print)
    ours.begin()
    other.__enter__()
    ours.end()
    torch.ones(2)
    assert other.count == 1 and ours.count == 0
    other.__exit__(None, None, None)


def test_the_threads_of_the_engine_are_seen():
    """Nested deeper than its limit, the engine goes on in threads of a pool."""
    threads = set()

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            threads.add(threading.get_ident())
            if ctx.depth:
                with torch.enable_grad():
                    x = torch.ones(2, requires_grad=True)
                    Nested.apply(x, ctx.depth - 1).sum().backward()
            return g.tanh(), None

    library = record_values(lambda: Nested.apply(
        torch.ones(2, requires_grad=True), 70).sum().backward())
    assert len(threads) > 1
    assert len(library.named("aten.tanh.default")) == 71
    assert all(o.facts["phase"] == "backward" for o in library.named("aten.tanh.default"))
