"""The values pass: identity, versions, views, partial writes, roles, backward and optimizer."""

import os
import sys
import threading

import pytest
import torch

from joulediff import _abi, _fingerprint
from joulediff._stacks import portable
from recorder import record_values


def hash_of(tensor):
    return tuple(_fingerprint.fingerprint(tensor).own)


def roles(library, operator):
    return [library.tensors[v].role for v in operator.inputs]


def test_in_place_has_the_old_value_and_the_new():
    x, old = torch.randn(4, 5), None

    def run():
        nonlocal old
        old = x.clone()
        x.add_(1.0)
        x.mul_(2.0)

    library = record_values(run)
    add, mul = library.named("aten.add_.Tensor")[0], library.named("aten.mul_.Tensor")[0]
    assert library.own(add.inputs[0]) == hash_of(old)
    assert library.own(mul.outputs[0]) == hash_of(x)
    assert add.outputs == mul.inputs
    versions = [library.tensors[v].version for v in (add.inputs[0], add.outputs[0], mul.outputs[0])]
    assert versions == [0, 1, 2]
    assert len({library.tensors[v].storage for v in (*add.inputs, *mul.outputs)}) == 1


def test_views_move_nothing_and_share_the_fingerprint():
    x = torch.randn(4, 6)

    def run():
        y = x.t().reshape(4, 6)  # a copy
        x.view(24).exp()
        x.t().exp()
        y[1:3].exp()

    library = record_values(run)
    view, t = library.named("aten.view.default")[0], library.named("aten.t.default")[0]
    assert view.view and t.view and library.own(view.outputs[0]) == library.own(t.outputs[0])
    assert not library.named("aten.clone.default")[0].view
    assert library.tensors[t.inputs[0]].sample_count == 24
    assert library.tensors[t.outputs[0]].sample_count == 0  # the axes are those of x
    assert library.tensors[view.outputs[0]].sample_count == 24  # new axes
    piece = library.named("aten.slice.Tensor")[0]
    assert piece.view and library.own(piece.outputs[0]) != library.own(piece.inputs[0])
    assert library.named("aten.exp.default")[1].inputs == t.outputs
    assert len(library.named("aten.t.default")) == 2
    assert library.named("aten.t.default")[1].outputs == []  # made by the first


def test_a_slice_write_makes_the_whole_from_its_parts():
    cache, new = torch.zeros(2, 8, 4), torch.randn(2, 1, 4)

    def run():
        cache[:, 3:4] = new
        cache[:, :4].sum()
        cache.sum()

    library = record_values(run)
    copy = library.named("aten.copy_.default")[0]
    sums = library.named("aten.sum.default")
    assert sums[1].inputs[0] in copy.outputs  # the whole after the write comes from the write
    assert library.own(sums[1].inputs[0]) == hash_of(cache)
    before = library.named("aten.slice.Tensor")[0].inputs[0]
    assert before in copy.inputs and library.own(before) == hash_of(torch.zeros(2, 8, 4))
    assert library.shape(copy.inputs[0]) == (2, 1, 4)


def test_what_a_write_does_not_touch_keeps_its_version():
    packed = torch.randn(3, 12)

    def run():
        q, k, v = packed.split(4, dim=1)
        q.mul_(0.5)
        k.exp()
        v.add_(1)
        (q + k).sum()

    library = record_values(run)
    split = library.named("aten.split.Tensor")[0]
    q, k, v = split.outputs
    assert library.named("aten.exp.default")[0].inputs == [k]
    add = library.named("aten.add.Tensor")[0]
    assert add.inputs == [library.named("aten.mul_.Tensor")[0].outputs[0], k]
    assert library.named("aten.add_.Tensor")[0].inputs == [v]


def test_writes_that_do_not_read():
    x, y, out = torch.randn(5), torch.randn(5), torch.empty(5)

    def run():
        torch.add(x, y, out=out)
        y.copy_(x)
        x.zero_()
        torch.aminmax(out, dim=0)

    library = record_values(run)
    add = library.named("aten.add.out")[0]
    assert len(add.inputs) == 2 and len(add.outputs) == 1
    assert library.own(add.outputs[0]) == hash_of(out)
    assert library.named("aten.copy_.default")[0].inputs == [add.inputs[0]]
    zero = library.named("aten.zero_.default")[0]
    assert zero.inputs == [] and library.tensors[zero.outputs[0]].role == _abi.CONSTANT
    assert len(library.named("aten.aminmax.default")[0].outputs) == 2


def test_roles():
    model = torch.nn.BatchNorm1d(6)
    x = torch.randn(3, 6)

    def run():
        mask = torch.arange(6) * 2 + torch.zeros(6)
        noise = torch.rand(3, 6)
        model(x + mask + noise)
        torch.nn.functional.dropout(x, 0.5)
        buffer = torch.empty(4)
        buffer.fill_(2.0).add_(1)

    library = record_values(run)
    norm = next(o for o in library.operators.values() if "batch_norm" in o.name)
    names = [_abi.COMPUTED, _abi.PARAMETER, _abi.PARAMETER, _abi.PARAMETER, _abi.PARAMETER]
    assert roles(library, norm) == names
    adds = library.named("aten.add.Tensor")
    role = lambda value: library.tensors[value].role  # noqa: E731
    assert role(library.named("aten.add.Tensor")[0].outputs[0]) == _abi.CONSTANT
    assert role(library.named("aten.rand.default")[0].outputs[0]) == _abi.INPUT
    assert roles(library, adds[1]) == [_abi.INPUT, _abi.CONSTANT]
    mask = library.named("aten.bernoulli_.float")[0]
    assert mask.inputs == [] and role(mask.outputs[0]) == _abi.INPUT
    assert role(library.named("aten.add_.Tensor")[-1].outputs[0]) == _abi.CONSTANT
    assert all(t.sample_count == 0 for t in library.tensors.values()
               if t.role in (_abi.PARAMETER, _abi.CONSTANT))


def test_expanded_tensors_are_what_they_repeat():
    x = torch.randn(3, 1)
    library = record_values(lambda: x.expand(3, 100).exp())
    value = library.named("aten.exp.default")[0].inputs[0]
    assert library.tensors[value].fingerprint.count == 3
    assert list(library.tensors[value].stride[:2]) == [1, 0]
    assert library.own(value) == hash_of(x)


def test_training_step_with_foreach():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    x, y = torch.randn(5, 8), torch.randn(5, 4)

    def run():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    run()
    weights = [p.detach().clone() for p in model.parameters()]
    library = record_values(run)
    phases = [o.facts["phase"] for _, o in sorted(library.operators.items())]
    assert [p for i, p in enumerate(phases) if i == 0 or phases[i - 1] != p] == [
        "forward", "backward", "optimizer"]
    gelu = library.named("aten.gelu.default")[0]
    back = library.named("aten.gelu_backward.default")[0]
    assert back.facts["forward"] == gelu.index and back.facts["stack"] == gelu.facts["stack"]
    assert gelu.facts["module"] == back.facts["module"] == "1"
    assert set(gelu.inputs) < set(back.inputs)
    step = [o for o in library.operators.values() if o.name.startswith("aten._foreach_addcdiv_")][0]
    old = {library.own(v) for v in step.inputs}
    new = {library.own(v) for v in step.outputs}
    assert {hash_of(w) for w in weights} <= old
    assert {hash_of(p) for p in model.parameters()} == new
    assert all(library.tensors[v].role == _abi.COMPUTED for v in step.outputs)
    # What the optimizer kept from the step before is state, not an input of this one.
    inputs = {library.own(v) for v, t in library.tensors.items() if t.role == _abi.INPUT}
    assert inputs == {hash_of(x), hash_of(y)}


def test_fused_optimizer_and_autograd_function():
    weight = torch.nn.Parameter(torch.randn(4))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, fused=True)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def run():
        Twice.apply(weight).sum().backward()
        optimizer.step()

    library = record_values(run)
    forward, backward = library.named("aten.mul.Tensor")
    assert backward.facts["forward"] == forward.index
    assert backward.facts["stack"] != forward.facts["stack"]  # its own line is the user's
    fused = [o for o in library.operators.values() if "_fused_sgd" in o.name][0]
    assert hash_of(weight) in {library.own(v) for v in fused.outputs}


def test_composite_operators_under_inference_mode():
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 3, 4)

    def run():
        with torch.inference_mode():
            layer(x).matmul(torch.ones(4, 2))

    names = [o.name for o in record_values(run).operators.values()]
    assert "aten.addmm.default" in names and "aten.linear.default" not in names


def test_arguments_and_signatures():
    x = torch.randn(2, 6)

    def run():
        torch.softmax(x, -1, dtype=torch.float64)
        x.sum()
        torch.cat([x, x, x.t().contiguous().view(2, 6)], dim=1)

    library = record_values(run)
    soft = library.named("aten._softmax.default")
    to = library.named("aten._to_copy.default")
    assert (to or soft)[0].facts["arguments"].get("dtype", "float64") == "float64"
    cat = library.named("aten.cat.default")[0]
    assert cat.facts["arguments"] == {"dim": 1}
    assert cat.facts["signature"] == 'aten.cat.default(3x[2,6]:[6,1]:float32:cpu; {"dim":1})'
    assert record_values(run).named("aten.cat.default")[0].facts == cat.facts | {
        "stack": cat.facts["stack"]}


def test_stacks_are_interned_and_begin_with_the_user():
    def inner(x):
        return x.exp()

    library = record_values(lambda: [inner(torch.ones(2)) for _ in range(3)])
    stacks = {f["id"]: f["frames"] for topic, f in library.facts if topic == "stack"}
    exps = library.named("aten.exp.default")
    assert len({o.facts["stack"] for o in exps}) == 1
    file, line, function = stacks[exps[0].facts["stack"]][0]
    assert file == portable(__file__) and function.endswith("inner") and line > 1


def test_operators_that_return_no_tensor_and_many_axes():
    x = torch.ones((2,) * 10)

    def run():
        x.sum().item()
        torch._assert_async(x.sum())
        x.neg()

    library = record_values(run)
    item = library.named("aten._local_scalar_dense.default")[0]
    assert item.outputs == [] and len(item.inputs) == 1
    assert any(t.fingerprint.count == 1024 and t.dims == 1 for t in library.tensors.values())


def test_unreadable_tensors_are_counted():
    sparse = torch.eye(3).to_sparse()
    library = record_values(lambda: torch.sparse.mm(sparse, torch.ones(3, 3)))
    assert "record.unreadable_tensors" in library.diagnostics()


def test_fresh_memory_and_unknown_dtypes_equal_nothing():
    def run():
        torch.empty(4).exp()
        torch.empty(4).exp()
        torch.zeros(4, dtype=torch.complex32).clone()

    library = record_values(run)
    exps = library.named("aten.exp.default")
    assert library.own(exps[0].inputs[0]) != library.own(exps[1].inputs[0])
    half = library.named("aten.clone.default")[0]
    assert library.own(half.inputs[0]) != library.own(half.outputs[0])
    assert library.tensors[half.inputs[0]].fingerprint.dtype == 0


def test_wrapped_subclasses_are_seen_inside():
    two = pytest.importorskip("torch.testing._internal.two_tensor")
    x = two.TwoTensor(torch.ones(3), torch.zeros(3))
    library = record_values(lambda: x + 1)
    assert len(library.named("aten.add.Tensor")) == 2


def test_our_mistake_ends_the_recording_not_the_program(monkeypatch):
    from joulediff._values import Values
    from recorder import Library

    def broken(tensor):
        raise ValueError("broken")

    monkeypatch.setattr(_fingerprint, "fingerprint", broken)
    errors = []
    mode = Values(_abi.Recorder(Library()), errors.append)
    mode.begin()
    got = torch.ones(3).exp().sum().item()
    mode.end()
    assert got == torch.ones(3).exp().sum().item() and len(errors) == 1


def test_inference_mode_takes_a_product_apart_as_the_program_does():
    """A batch of single rows is folded into one product, because the weight requires a gradient."""
    linear = torch.nn.Linear(8, 5, bias=False)
    rows = torch.randn(3, 4, 8)

    def run():
        with torch.inference_mode():
            linear.weight[0].expand(2, 8)
            linear(rows[:, -1:, :])

    names = [o.name for o in record_values(run).operators.values()]
    assert "aten.mm.default" in names and "aten.bmm.default" not in names


def test_places_are_named_as_on_any_machine():
    assert portable(threading.__file__) == "lib/python{}.{}/threading.py".format(*sys.version_info)
    assert portable(torch.__file__) == "site-packages/torch/__init__.py"
    assert portable(os.path.join(os.getcwd(), "cases/x.py")) == "cases/x.py"
    assert portable("/other/x.py") == "/other/x.py" and portable("<string>") == "<string>"
