"""CUDA graphs without a device: a graph here is a function that nobody sees at work."""

import pytest
import torch

from joulediff import _abi, _graphs, _mode
from joulediff._mode import unseen
from joulediff._order import Order
from recorder import Library, record_values


class Graph:
    """As torch.cuda.CUDAGraph: what runs between capture_begin and capture_end is kept."""

    work = None

    def capture_begin(self):
        Graph.capturing = True

    def capture_end(self):
        Graph.capturing = False

    def replay(self):
        with unseen():
            self.work()


@pytest.fixture
def graphs(monkeypatch):
    Graph.capturing = False
    kind = type("CUDAGraph", (Graph,), {})
    monkeypatch.setattr(torch.cuda, "CUDAGraph", kind)
    monkeypatch.setattr(_mode, "_capturing", lambda: Graph.capturing)
    return kind


class Decode:
    """Static buffers, as an engine has them around its graphs."""

    def __init__(self, kind):
        self.weight, self.x, self.y = torch.randn(4, 4), torch.zeros(2, 4), torch.zeros(2, 4)
        self.cache, self.graph = torch.zeros(3, 4), kind()
        self.graph.work = self.compute

    def compute(self):
        self.cache[1].copy_(self.x[0])
        torch.mm(self.x, self.weight, out=self.y)

    def capture(self):
        self.graph.capture_begin()
        self.compute()
        self.graph.capture_end()

    def step(self, x):
        self.x.copy_(x)
        self.graph.replay()
        return self.y.argmax(-1)


def test_a_replay_is_one_operator_between_its_buffers(graphs):
    decode, x, other = Decode(graphs), torch.randn(2, 4), torch.randn(2, 2)

    def run():
        decode.cache.sum()  # known, and changed by the graph
        other.sum()  # known, and left alone
        tokens = decode.step(x)
        decode.cache.sum()
        other.sum()
        return tokens

    library = record_values(run)
    [replay], [copy] = library.named("cuda_graph.replay"), library.named("aten.copy_.default")
    [argmax] = library.named("aten.argmax.default")
    before, same, after, still = library.named("aten.sum.default")
    assert replay.inputs == copy.outputs  # the buffer that was filled, nothing else
    assert set(replay.outputs) == {argmax.inputs[0], after.inputs[0]}
    assert before.inputs != after.inputs and same.inputs == still.inputs
    assert library.own(argmax.inputs[0]) == tuple(_hash(x @ decode.weight))
    assert not library.named("aten.mm.out")  # inside
    assert replay.facts["arguments"] == {"graph": _graphs.capture_of(decode.graph).number,
                                         "operators": []}


def _hash(tensor):
    from joulediff import _fingerprint

    return _fingerprint.fingerprint(tensor).own


def test_a_capture_that_a_pass_saw_is_named(graphs):
    _graphs.watch()
    decode, fresh = Decode(graphs), torch.randn(2, 4)

    def run():
        decode.capture()
        tokens = decode.step(torch.ones(2, 4))
        return tokens, fresh.exp()

    library = record_values(run)
    [replay] = library.named("cuda_graph.replay")
    assert replay.facts["arguments"]["operators"][-1] == "aten.mm.out"
    assert library.named("aten.argmax.default")[0].inputs == replay.outputs
    [exp] = library.named("aten.exp.default")  # not written by the graph: an input of the step
    assert library.tensors[exp.inputs[0]].role == _abi.INPUT


def test_graphs_have_numbers_and_signatures_of_their_own(graphs):
    _graphs.watch()
    first, second = Decode(graphs), Decode(graphs)
    first.capture()
    second.capture()
    assert (_graphs.capture_of(second.graph).number
            == _graphs.capture_of(first.graph).number + 1)
    library = record_values(lambda: [d.step(torch.ones(2, 4)) for d in (first, second, first)])
    one, two, again = (o.facts["signature"] for o in library.named("cuda_graph.replay"))
    assert one == again != two


def test_the_order_pass_brackets_a_replay(graphs):
    decode, library, errors = Decode(graphs), Library(), []
    order = Order(_abi.Recorder(library), errors.append)
    order.begin_step(2, True)
    decode.step(torch.ones(2, 4))
    order.end()
    assert [name for _, _, name in library.brackets if "graph" in name] == ["cuda_graph.replay"]
    chosen = {name: moves for name, _, moves in order.operators.values()}
    assert chosen["aten.copy_.default"] and not chosen["cuda_graph.replay"]  # never run once more
    assert not errors and graphs.replay is Graph.replay  # as it was
