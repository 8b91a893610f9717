"""The transformer of jax_programs.py in PyTorch, or in JAX: `jax_pair.py torch OUT.npy`.

It writes what the first step gives and goes on until it is ended.
"""

import itertools
import sys

import numpy as np


def run_torch(path, weights, tokens, heads):
    import torch

    functional = torch.nn.functional
    width = weights["wte"].shape[1]

    class Block(torch.nn.Module):
        def __init__(self, p):
            super().__init__()
            for name, value in p.items():
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(value)))

        def forward(self, x):
            batch, length, _ = x.shape

            def split(t):
                return t.view(batch, length, heads, width // heads).transpose(1, 2)

            h = functional.layer_norm(x, (width,), self.ln1, self.b1) @ self.qkv + self.bqkv
            q, k, v = map(split, h.split(width, -1))
            scores = q @ k.transpose(-1, -2) / (width // heads) ** 0.5
            past = torch.ones(length, length, dtype=torch.bool).tril()
            mixed = scores.masked_fill(~past, float("-inf")).softmax(-1) @ v
            x = x + (mixed.transpose(1, 2).reshape(batch, length, width) @ self.proj + self.bproj)
            h = functional.layer_norm(x, (width,), self.ln2, self.b2) @ self.up + self.bup
            return x + (functional.gelu(h) @ self.down + self.bdown)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("wte", "wpe", "lnf", "bf"):
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(weights[name])))
            self.blocks = torch.nn.ModuleList(map(Block, weights["blocks"]))

        def forward(self, ids):
            x = self.wte[ids] + self.wpe[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return functional.layer_norm(x, (width,), self.lnf, self.bf) @ self.wte.T

    model, ids = Model().eval(), torch.tensor(tokens)
    with torch.no_grad():
        for i in itertools.count():
            out = model(ids)
            if i == 0:
                np.save(path, out.numpy())


def run_jax(path, weights, tokens):
    import jax
    import jax.numpy as jnp
    from jax_programs import transformer

    model = jax.jit(transformer)
    params, ids = jax.tree.map(jnp.asarray, weights), jnp.asarray(tokens)
    for i in itertools.count():
        out = model(params, ids).block_until_ready()
        if i == 0:
            np.save(path, np.asarray(out))


def main():
    framework, path = sys.argv[1:]
    from jax_programs import HEADS, tokens, weights

    if framework == "torch":
        run_torch(path, weights(), tokens(), HEADS)
    else:
        run_jax(path, weights(), tokens())


if __name__ == "__main__":
    main()
