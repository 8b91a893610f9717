"""What a recording needs of ONNX Runtime: its passes and its settings. A run returns when it is over."""

from joulediff._onnx_passes import Order, Replay, Values, forget
from joulediff._onnx_settings import manifest, snapshot, versions

OF_CONTEXT = ()


def synchronize():
    """Nothing runs behind the program's back."""


def profiler():
    """The name of a profiler that has the device's records, which only one tool can have; or None."""


def twin():
    """Where the values come from, if not from the program as it runs."""
    return ("the session gives its outputs alone: values come from a second one beside it, of the graph as the runtime "
            "has optimised it; an operator is one node of that")


__all__ = ["OF_CONTEXT", "Order", "Replay", "Values", "forget", "manifest", "profiler", "snapshot", "synchronize",
           "twin", "versions"]
