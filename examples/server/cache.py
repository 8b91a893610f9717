"""The paged KV cache: keys and values lie in blocks, and a sequence has a table of its blocks.

Block 0 belongs to nobody: what fills up a batch is written there.
"""

import torch

BLOCK = 16  # tokens


class Blocks:
    """Which blocks are free."""

    def __init__(self, count):
        self._free = list(range(count - 1, 0, -1))

    def take(self, tokens):
        """The table of a sequence of so many tokens; None where there is no room."""
        count = -(-tokens // BLOCK)
        return [self._free.pop() for _ in range(count)] if count <= len(self._free) else None

    def give_back(self, table):
        self._free.extend(table)


class Cache:
    """Of one layer: [blocks, tokens of a block, heads, channels]."""

    def __init__(self, config, device, dtype, relayout=False):
        shape = config.blocks, BLOCK, config.heads, config.head
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self._relayout = relayout

    def write(self, slots, keys, values):
        for cache, new in ((self.keys, keys), (self.values, values)):
            cache.flatten(0, 1).index_copy_(0, slots.flatten(), new.flatten(0, 1))

    def read(self, table):
        """The keys and the values of whole sequences: [sequences, tokens, heads, channels]."""
        return [self._gather(cache, table) for cache in (self.keys, self.values)]

    def _gather(self, cache, table):
        if self._relayout:  # the whole cache, to read a few blocks of it
            cache = cache.transpose(1, 2).contiguous().transpose(1, 2)
        found = cache.index_select(0, table.flatten())
        return found.reshape(table.shape[0], -1, *cache.shape[2:])
