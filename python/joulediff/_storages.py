"""Which bytes a tensor stands for, and which write of the step they come from.

A value is a geometry over a version of a storage. The dispatch comes before the framework's own
version counter moves, and not every framework write moves it, so versions are counted here, one for
each write of an operator's schema. A write through a view changes only what it covers: a geometry
that it does not touch keeps its version, and one that it touches in part is put together from the
value before and the part written. No tensor is kept alive: a storage is known by its address, and a
weak reference keeps the address from being used again.
"""

import dataclasses

import torch
from torch.multiprocessing.reductions import StorageWeakRef


@dataclasses.dataclass(frozen=True)
class Region:
    """A set of bytes in a storage: axes are (length, stride) in bytes, widest stride first, merged."""

    offset: int
    axes: tuple

    @property
    def end(self):
        return self.offset + 1 + sum((n - 1) * stride for n, stride in self.axes)


def region_of(tensor):
    """The bytes of a strided tensor; axes of stride 0 and length 1 do not count."""
    size = tensor.element_size()
    if tensor.numel() == 0:
        return Region(tensor.storage_offset() * size, ((0, 1),))
    axes = [(int(n), int(stride) * size)
            for n, stride in zip(tensor.shape, tensor.stride(), strict=True) if n != 1 and stride]
    axes.append((size, 1))
    axes.sort(key=lambda axis: (-axis[1], -axis[0]))
    merged = [axes[0]]
    for n, stride in axes[1:]:
        outer, outer_stride = merged[-1]
        if outer_stride == n * stride:
            merged[-1] = (outer * n, stride)
        else:
            merged.append((n, stride))
    return Region(int(tensor.storage_offset()) * size, tuple(merged))


def _box(region, strides):
    """The region as [first, last) on each axis of a common grid, or None where it is no box of it."""
    lengths = {stride: n for n, stride in region.axes}
    if len(lengths) != len(region.axes):
        return None
    box, rest = [], region.offset
    limits = [None, *(wide // s for wide, s in zip(strides, strides[1:], strict=False))]
    for i in range(len(strides) - 1, 0, -1):
        n, limit = lengths.get(strides[i], 1), limits[i]
        if n > limit:  # a merged axis that the other region cuts
            if n % limit or strides[i - 1] in lengths:
                return None
            lengths[strides[i]], lengths[strides[i - 1]] = limit, n // limit
    for stride, limit in zip(strides, limits, strict=True):
        first, rest = divmod(rest, stride)
        last = first + lengths.get(stride, 1)
        if limit is not None and last > limit:
            return None
        box.append((first, last))
    return box


def relation(write, read):
    """What a write does to a read: "covers", "misses" or "touches" (in part, or not known)."""
    if write is None or write == read:  # None: the whole storage
        return "covers"
    if write.end <= read.offset or read.end <= write.offset:
        return "misses"
    if (len(write.axes) == 1 and write.axes[0][1] == 1
            and write.offset <= read.offset and read.end <= write.end):
        return "covers"
    strides = sorted({stride for _, stride in (*write.axes, *read.axes)}, reverse=True)
    if any(wide % narrow for wide, narrow in zip(strides, strides[1:], strict=False)):
        return "touches"
    a, b = _box(write, strides), _box(read, strides)
    if a is None or b is None:
        return "touches"
    pairs = list(zip(a, b, strict=True))
    if any(x[1] <= y[0] or y[1] <= x[0] for x, y in pairs):
        return "misses"
    return "covers" if all(x[0] <= y[0] and y[1] <= x[1] for x, y in pairs) else "touches"


@dataclasses.dataclass
class Write:
    """One write of the step. `region` None: the storage was made. `value`: the id of what it wrote."""

    version: int
    region: Region | None
    operation: object
    role: int
    blank: bool = False  # made, but not written: what it holds is no value
    value: int | None = None


class Storage:
    """A storage of the program, and the writes that the step has made to it."""

    def __init__(self, number, weak, role):
        self.id, self.weak, self.role = number, weak, role
        self.made = False  # by an operator of the step
        self.graph = None  # operation: may have written here, which nobody has checked yet
        self.writes = []

    def write(self, region, operation, role, blank=False):
        version = self.writes[-1].version + 1 if self.writes else 1
        self.writes.append(Write(version, region, operation, role, blank))
        return self.writes[-1]

    def sources(self, region):
        """The writes that a read of `region` sees, the latest first, down to one that covers it."""
        found = []
        for write in reversed(self.writes):
            how = relation(write.region, region)
            if how != "misses":
                found.append(write)
            if how == "covers":
                break
        return found


class Storages:
    """The storages seen in a pass, by address. `ids`: an iterator of numbers, one for the process."""

    def __init__(self, ids):
        self._ids, self._known = ids, {}

    def get(self, tensor):
        """The Storage of a tensor if it was seen before, else None."""
        return self._known.get(tensor.untyped_storage()._cdata)

    def add(self, tensor, role):
        weak = StorageWeakRef(tensor.untyped_storage())
        storage = self._known[weak.cdata] = Storage(next(self._ids), weak, role)
        return storage

    def __iter__(self):
        return iter(self._known.values())

    def clear(self):
        self._known.clear()


def has_storage(tensor):
    """False for sparse, meta, quantised and wrapped tensors: there is no value to read."""
    if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        return False
    try:
        return tensor.untyped_storage()._cdata != 0
    except (NotImplementedError, RuntimeError):
        return False
