"""What a recording needs of PyTorch: its passes, its settings, and how to wait for its device."""

import sys

import torch

from joulediff._mode import synchronize
from joulediff._order import Order
from joulediff._replay import Replay
from joulediff._settings import manifest, snapshot, versions
from joulediff._values import Values

# Settings that hold in the region but not around it are no change.
OF_CONTEXT = ("torch.grad_enabled", "torch.is_inference_mode_enabled", "torch.autocast.cuda",
              "torch.autocast.cuda.dtype", "torch.autocast.cpu", "torch.autocast.cpu.dtype")


def profiler():
    """The name of a profiler that has the device's records, which only one tool can have; or None."""
    running = torch.autograd.profiler._is_profiler_enabled and torch.cuda.is_initialized()
    return "torch.profiler" if running else None


def twin():
    """Where the values come from, if not from the program as it runs."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is None or not dynamo.counters.get("frames"):
        return None
    return "the program compiles: values and order come from the eager form of the same code"


def forget():
    """After a recording: nothing is kept."""


__all__ = ["OF_CONTEXT", "Order", "Replay", "Values", "forget", "manifest", "profiler", "snapshot", "synchronize",
           "twin", "versions"]
