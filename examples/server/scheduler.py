"""Continuous batching: sequences join and leave the batch between two steps.

A step is the prompt of one sequence, or one more token for each that runs. Sizes are rounded up, so that
few shapes come: prompts to whole blocks, sequences to a power of two.
"""

import collections
import dataclasses

import torch

from examples.server.cache import BLOCK, Blocks
from examples.server.model import Batch


@dataclasses.dataclass
class Sequence:
    id: int
    prompt: list
    wanted: int  # tokens to generate
    table: list = dataclasses.field(default_factory=list)
    tokens: list = dataclasses.field(default_factory=list)

    def slot(self, position):
        return self.table[position // BLOCK] * BLOCK + position % BLOCK


class Scheduler:
    def __init__(self, config, most):
        """most: sequences that run at once."""
        self._config, self._most = config, most
        self._blocks = Blocks(config.blocks)
        self._waiting, self._running = collections.deque(), []

    def __bool__(self):
        return bool(self._waiting or self._running)

    def add(self, sequence):
        length = len(sequence.prompt) + sequence.wanted
        if not sequence.prompt or sequence.wanted < 1 or length > self._config.longest:
            raise ValueError(f"a prompt and at most {self._config.longest} tokens in all are needed")
        self._waiting.append(sequence)

    def next(self):
        """The sequences of the next step, and their batch on the host."""
        joining = self._join()
        if joining is not None:
            prompt = joining.prompt
            return [joining], self._batch([(joining, 0, prompt)], 1, -(-len(prompt) // BLOCK) * BLOCK)
        rows = [(s, len(s.prompt) + len(s.tokens) - 1, s.tokens[-1:]) for s in self._running]
        return list(self._running), self._batch(rows, self.bucket(len(rows)), 1)

    def _join(self):
        if not self._waiting or len(self._running) >= self._most:
            return None
        table = self._blocks.take(len(self._waiting[0].prompt) + self._waiting[0].wanted)
        if table is None:
            return None
        sequence = self._waiting.popleft()
        sequence.table = table
        self._running.append(sequence)
        return sequence

    @staticmethod
    def bucket(count):
        return 1 << (count - 1).bit_length()

    def _batch(self, rows, sequences, length):
        """rows: (sequence, first position, tokens)."""
        tokens, positions, slots = (torch.zeros(sequences, length, dtype=torch.long) for _ in range(3))
        table = torch.zeros(sequences, self._config.longest // BLOCK, dtype=torch.long)
        last = torch.zeros(sequences, dtype=torch.long)
        for row, (sequence, first, given) in enumerate(rows):
            count = len(given)
            tokens[row, :count] = torch.tensor(given)
            positions[row, :count] = torch.arange(first, first + count)
            slots[row, :count] = torch.tensor([sequence.slot(first + i) for i in range(count)])
            table[row, :len(sequence.table)] = torch.tensor(sequence.table)
            last[row] = count - 1
        return Batch(tokens, positions, slots, table, last)

    def empty(self, sequences):
        """A batch of decode of nobody's tokens."""
        return self._batch([], sequences, 1)

    def append(self, sequences, tokens):
        """Gives each sequence its token; those that are done, which leave."""
        done = []
        for sequence, token in zip(sequences, tokens, strict=True):
            sequence.tokens.append(token)
            if len(sequence.tokens) == sequence.wanted:
                done.append(sequence)
                self._running.remove(sequence)
                self._blocks.give_back(sequence.table)
        return done
