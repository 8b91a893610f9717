"""CUDA graphs of the program: which one a replay launches, and what was seen of its capture.

Captures are numbered from the start of the process, so that a graph has the same number in every block.
What lies inside is known only where a pass was on during the capture: a mode of ours on the stack at any
other time would make the compiler capture another program.
"""

import dataclasses
import itertools
import weakref

import torch

from joulediff import _operator, _storages


@dataclasses.dataclass
class Capture:
    """Empty `operators`: nobody saw it. `written`: the addresses of the storages written, and what keeps
    them from being used again."""

    number: int
    operators: list = dataclasses.field(default_factory=list)
    written: dict = dataclasses.field(default_factory=dict)


_numbers = itertools.count(1)
_captures = weakref.WeakKeyDictionary()
_open = []


def capture_of(graph):
    if graph not in _captures:
        _captures[graph] = Capture(next(_numbers))
    return _captures[graph]


def watch():
    """Numbers the captures of this process; called once."""
    kind = torch.cuda.CUDAGraph
    begin, end = kind.capture_begin, kind.capture_end

    def capture_begin(graph, *args, **kwargs):
        _captures.pop(graph, None)
        _open[:] = [capture_of(graph)]
        return begin(graph, *args, **kwargs)

    def capture_end(graph):
        _open.clear()
        return end(graph)

    kind.capture_begin, kind.capture_end = capture_begin, capture_end


def note(form, args, kwargs, result):
    """An operator that a pass sees while a graph is captured."""
    if not _open or not form.counted:
        return
    capture = _open[0]
    capture.operators.append(form.name)
    written = [t for _, value, writes, _, _ in _operator.bound(form, args, kwargs) if writes
               for t in _operator.tensors_in(value)]
    for tensor in (*written, *_operator.tensors_in(result)):
        if _storages.has_storage(tensor):
            weak = _storages.StorageWeakRef(tensor.untyped_storage())
            capture.written[weak.cdata] = weak


def patch_replay(mode, undo):
    """While the mode is on, a launch of a graph is one operator."""
    kind = torch.cuda.CUDAGraph
    original = kind.replay

    def replay(graph):
        return mode.launch(_operator.GraphReplay(graph, original, capture_of(graph)), (), {})

    kind.replay = replay
    undo.callback(setattr, kind, "replay", original)
