#!/usr/bin/env python3
"""The engine's model in PyTorch: writes weights that both load, and runs the same step.

    python examples/engine/reference.py write MODEL.safetensors [--layers 4 --heads 4 --width 128 --seed 0]
    python examples/engine/reference.py run MODEL.safetensors [--prompt 1,2,3] [--tokens N] [--steps N]

The names in the file are GPT-2's, so that its published weights are read too.
"""

import argparse
import importlib.util
import json
import pathlib
import struct
import sys

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

if importlib.util.find_spec("joulediff") is None:  # not installed: that of this checkout
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import joulediff.torch  # noqa: E402


class Conv1D(nn.Module):
    """A linear layer whose weight is [in, out], as GPT-2's files have it."""

    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, columns))
        self.bias = nn.Parameter(torch.empty(columns))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x, cache):
        rows, width = x.shape
        q, k, v = (part.view(rows, self.heads, -1).transpose(0, 1)
                   for part in self.c_attn(x).split(width, dim=1))
        if cache:
            k, v = torch.cat((cache[0], k), dim=1), torch.cat((cache[1], v), dim=1)
        cache[:] = k, v
        mixed = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=rows > 1)[0]
        return self.c_proj(mixed.transpose(0, 1).reshape(rows, width))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width, heads), MLP(width)

    def forward(self, x, cache):
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, layers, heads, width, vocabulary, positions):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens, position, caches):
        """The token after `tokens`, the first of which is at `position`."""
        x = self.wte(tokens) + self.wpe(torch.arange(position, position + len(tokens)))
        for block, cache in zip(self.h, caches, strict=True):
            x = block(x, cache)
        return F.linear(self.ln_f(x[-1:]), self.wte.weight).argmax(dim=1)

    def generate(self, prompt, count):
        caches, tokens, position = [[] for _ in self.h], prompt, 0
        generated = []
        for _ in range(count):
            following = self(tokens, position, caches)
            position += len(tokens)
            tokens = following
            generated.append(following)
        return torch.cat(generated)


def write(path, model, heads):
    tensors, header, at = {}, {"__metadata__": {"n_head": str(heads)}}, 0
    for name, value in model.state_dict().items():
        tensors[name] = value.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape),
                        "data_offsets": [at, at + len(tensors[name])]}
        at += len(tensors[name])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for content in tensors.values():
            file.write(content)


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    heads = header.pop("__metadata__", {}).get("n_head")
    state = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(data, dtype=torch.float32, offset=begin, count=(end - begin) // 4)
        state[name.removeprefix("transformer.")] = values.view(entry["shape"])
    vocabulary, width = state["wte.weight"].shape
    layers = sum(name.endswith(".ln_1.weight") for name in state)
    model = GPT2(layers, int(heads) if heads else width // 64, width, vocabulary,
                 len(state["wpe.weight"]))
    model.load_state_dict(state, strict=False)  # published files have the causal mask, too
    return model.eval()


def weights(given):
    torch.manual_seed(given.seed)
    model = GPT2(given.layers, given.heads, given.width, given.vocabulary, given.positions)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = "ln_" in name and name.endswith("weight")
            parameter.normal_(1.0 if norm else 0.0, 0.1)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("write", "run"))
    parser.add_argument("model")
    for name, value in (("layers", 4), ("heads", 4), ("width", 128), ("vocabulary", 1000),
                        ("positions", 128), ("seed", 0), ("tokens", 8), ("steps", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--prompt", default="0,1,2,3,4,5,6,7")
    given = parser.parse_args()
    if given.what == "write":
        write(given.model, weights(given), given.heads)
        return
    model = read(given.model)
    prompt = torch.tensor([int(token) for token in given.prompt.split(",")])
    joulediff.torch.work("token", given.tokens)
    with torch.no_grad():
        for _ in joulediff.torch.steps(given.steps):
            generated = model.generate(prompt, given.tokens)
    print(*generated.tolist())


if __name__ == "__main__":
    main()
