"""Networks of PyTorch with their weights, which ONNX Runtime runs too; and small graphs made by hand."""

import contextlib
import io
import warnings

import numpy as np
import torch
from torch import nn

LAYERS, WIDTH, HEADS, TOKENS, WORDS, BATCH = 2, 64, 4, 16, 128, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.gelu = nn.GELU()

    def forward(self, x, mask):
        batch, length, _ = x.shape

        def split(t):
            return t.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        q, k, v = map(split, self.qkv(self.ln1(x)).split(WIDTH, -1))
        scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + mask[:length, :length]
        mixed = scores.softmax(-1) @ v
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(self.gelu(self.up(self.ln2(x))))


class Transformer(nn.Module):
    """A GPT-2 with exact GELU: int64 [batch, length] -> float32 [batch, length, words]."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.register_buffer("mask", torch.full((TOKENS, TOKENS), float("-inf")).triu(1))

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for block in self.h:
            x = block(x, self.mask)
        return self.head(self.ln(x))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x):
        y = torch.relu(self.norm1(self.one(x)))
        return torch.relu(x + self.norm2(self.two(y)))


class Convolutions(nn.Module):
    """A ResNet: float32 [batch, 3, 32, 32] -> [batch, 10]."""

    def __init__(self):
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, 32, 3, padding=1), nn.MaxPool2d(2)
        self.blocks = nn.Sequential(Residual(32), Residual(32))
        self.wide, self.head = nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(self.pool(torch.relu(self.stem(x))))
        return self.head(torch.relu(self.wide(x)).mean((2, 3)))


def network(name):
    """(the network, its input)."""
    torch.manual_seed(0)
    made = {"transformer": Transformer, "convolutions": Convolutions}[name]()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0, 0.1)
        for layer in made.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_(0, 0.3)
                layer.running_var.uniform_(0.5, 1.5)
    x = torch.randint(0, WORDS, (BATCH, TOKENS)) if name == "transformer" else torch.randn(BATCH, 3, 32, 32)
    return made.eval(), x


def export(name, path, dynamo=True):
    """Writes the network as an ONNX model whose batch is free."""
    made, x = network(name)
    how = ({"dynamic_shapes": ({0: torch.export.Dim("batch")},), "external_data": False} if dynamo
           else {"dynamic_axes": {"x": {0: "batch"}, "y": {0: "batch"}}})
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(made, (x,), str(path), input_names=["x"], output_names=["y"], dynamo=dynamo,
                          opset_version=18 if dynamo else 17, **how)


def graph(nodes, inputs, outputs, weights=(), opset=17, functions=None):
    """The bytes of a model. nodes: (operator, inputs, outputs, attributes); inputs, outputs: {name: (type, shape)};
    weights: {name: array}.
    """
    from onnx import TensorProto, helper, numpy_helper

    def values(named):
        return [v if not isinstance(v, tuple) else helper.make_tensor_value_info(
            name, getattr(TensorProto, v[0].upper()), v[1]) for name, v in named.items()]

    made = [helper.make_node(kind, ins, outs, name=f"/model/layers.{i}/{kind}", **more)
            for i, (kind, ins, outs, more) in enumerate(nodes)]
    held = [numpy_helper.from_array(np.asarray(a), name) if not hasattr(a, "dims") else a
            for name, a in dict(weights).items()]
    body = helper.make_graph(made, "graph", values(inputs), values(outputs), held)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(body, opset_imports=imports, ir_version=9).SerializeToString()
