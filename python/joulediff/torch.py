"""Marks the steps of a PyTorch program for `joulediff record`.

    import joulediff.torch

    joulediff.torch.work("token", batch * length)
    for _ in joulediff.torch.steps(50):
        step()

Without a recorder in the environment steps(n) is range(n) and nothing else happens.
"""

from joulediff import _region


def steps(n):
    """Yields 0, 1, ... at least `n` times, and more where the recorder needs more steps.

    A step lasts from one value to the next. Only the first loop of a process is recorded.
    """
    return _region.steps(n, "torch")


def work(unit, per_step):
    """Says what one step does, as ("token", 8192): a unit's name and how many of it."""
    _region.state.work = (str(unit), float(per_step))


def state(**facts):
    """Says what only the program's maker knows, by the names of docs/points.md, whenever it is known:
    state(**{"quality.metric": "F1", "quality.value": 90.9, "quality.precision": ["fp8", "bf16"]}).
    """
    _region.tell("manifest", {key: _in_words(value) for key, value in facts.items()})


def _in_words(value):
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


_region.state.explicit = True
