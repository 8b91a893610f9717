"""A small Llama-like model over a paged KV cache, with random weights."""

import dataclasses

import torch
import torch.nn.functional as F

from examples.server.cache import BLOCK


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int
    width: int
    heads: int
    vocabulary: int
    longest: int = 128  # tokens of a sequence
    blocks: int = 160  # of the cache

    @property
    def head(self):
        return self.width // self.heads


SIZES = {"tiny": Config(2, 64, 4, 512),
         "small": Config(8, 512, 8, 8192),
         "large": Config(16, 2048, 16, 32000, longest=512, blocks=1024)}


@dataclasses.dataclass
class Batch:
    """`tokens` of sequences side by side: whole prompts, or the last token of each.

    slots: where in the cache the token's key and value go; table: the blocks of each sequence;
    last: which of its tokens says what comes next.
    """

    tokens: torch.Tensor  # [sequences, tokens]
    positions: torch.Tensor
    slots: torch.Tensor
    table: torch.Tensor  # [sequences, blocks]
    last: torch.Tensor  # [sequences]

    def tensors(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]


class Layer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config.width, 4 * config.width
        self.heads, self.head = config.heads, config.head
        self.norm_in = torch.nn.Parameter(torch.ones(width))
        self.norm_out = torch.nn.Parameter(torch.ones(width))
        for name, rows, columns in (("qkv", 3 * width, width), ("out", width, width),
                                    ("gate_up", 2 * inner, width), ("down", width, inner)):
            weight = torch.randn(rows, columns) * columns**-0.5
            setattr(self, name, torch.nn.Parameter(weight))

    def attend(self, x, rotation, cache, batch, mask):
        sequences, length, width = x.shape
        qkv = F.linear(x, self.qkv).view(sequences, length, 3, self.heads, self.head)
        query, key, value = qkv.unbind(2)
        query, key = rotate(query, rotation), rotate(key, rotation)
        cache.write(batch.slots, key, value)
        keys, values = cache.read(batch.table)
        attended = F.scaled_dot_product_attention(
            query.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), attn_mask=mask)
        return F.linear(attended.transpose(1, 2).reshape(sequences, length, width), self.out)

    def feed(self, x):
        gate, up = F.linear(x, self.gate_up).chunk(2, -1)
        return F.linear(F.silu(gate) * up, self.down)

    def run(self, x, rotation, cache, batch, mask):
        x = x + self.attend(normalised(x, self.norm_in), rotation, cache, batch, mask)
        return x + self.feed(normalised(x, self.norm_out))


def normalised(x, weight):
    return F.rms_norm(x, weight.shape, weight, 1e-6)


def rotate(x, rotation):
    """Turns pairs of channels by an angle that grows with the position."""
    cosine, sine = rotation
    even, odd = x.chunk(2, -1)
    return torch.cat((even * cosine - odd * sine, even * sine + odd * cosine), -1)


class Model(torch.nn.Module):
    def __init__(self, config, caches, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.caches, self.graphs = caches, {}
        self.embedding = torch.nn.Parameter(torch.randn(config.vocabulary, config.width))
        self.layers = torch.nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = torch.nn.Parameter(torch.ones(config.width))
        speed = 10000.0 ** -(torch.arange(0, config.head, 2) / config.head)
        angle = torch.arange(config.longest).unsqueeze(1) * speed
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def forward(self, batch):
        """What comes next after each sequence: [sequences, vocabulary]."""
        if batch.tokens.shape in self.graphs:
            return self.graphs[batch.tokens.shape].replay(batch)
        return self.compute(batch)

    def compute(self, batch):
        rotation = [table[batch.positions].unsqueeze(2) for table in (self.cosine, self.sine)]
        places = torch.arange(batch.table.shape[1] * BLOCK, device=batch.table.device)
        mask = (places <= batch.positions.unsqueeze(-1)).unsqueeze(1)
        x = self.embedding[batch.tokens]
        for layer, cache in zip(self.layers, self.caches, strict=True):
            x = layer.run(x, rotation, cache, batch, mask)
        rows = torch.arange(x.shape[0], device=x.device)
        return F.linear(normalised(x[rows, batch.last], self.norm), self.embedding)

    def capture(self, batches):
        """From now on batches of these sizes are launched as graphs."""
        for batch in sorted(batches, key=lambda b: -b.tokens.numel()):
            self.graphs[batch.tokens.shape] = Graph(self, batch)


class Graph:
    """The kernels of one size of batch, over buffers of their own."""

    def __init__(self, model, batch):
        self.batch, self.graph = batch, torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            model.compute(batch)  # libraries make their workspaces
        stream.synchronize()
        with torch.cuda.graph(self.graph, stream=stream):
            self.logits = model.compute(batch)

    def replay(self, batch):
        for mine, given in zip(self.batch.tensors(), batch.tensors(), strict=True):
            mine.copy_(given)
        self.graph.replay()
        return self.logits
