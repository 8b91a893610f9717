"""Tensors that are easily taken for each other: the same elements in another order, projections of one
input by weights of one distribution, rounds of one layer, and all but a row."""

import torch
from common import spread

WIDTH, ROWS, ROUNDS = 64, 48, 6


class Program(torch.nn.Module):
    def __init__(self, rows, shift, projection, broken):
        super().__init__()
        self.first, self.shared = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.q, self.k = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.after = torch.nn.Linear(WIDTH, WIDTH)
        self.rows, self.shift, self.projection, self.broken = rows, shift, projection, broken

    def forward(self, x):
        h = torch.nn.functional.gelu(self.first(x))
        taken = [h[self.rows], h.roll(self.shift, 0), h.flip(0 if self.shift > 1 else 1),
                 getattr(self, self.projection)(h)]
        softened = h.softmax(-1 if self.shift > 1 else 0)
        z = h
        for _ in range(ROUNDS):
            z = torch.tanh(self.shared(z) * 1.5)
        changed = z.clone()
        changed[self.broken] = 0
        return taken, softened, self.after(changed)


def inputs():
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(2))


def order(seed):
    return torch.randperm(ROWS, generator=torch.Generator().manual_seed(seed))


def a():
    return spread(Program(order(3), 1, "q", 5).eval()), inputs()


def b():
    return spread(Program(order(4), 2, "k", 6).eval()), inputs()
