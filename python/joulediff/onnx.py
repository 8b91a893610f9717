"""Marks the steps of a program of ONNX Runtime for `joulediff record`.

    import joulediff.onnx

    joulediff.onnx.work("token", batch * length)
    for _ in joulediff.onnx.steps(50):
        logits = session.run(None, {"input_ids": ids})

Without a recorder in the environment steps(n) is range(n) and nothing else happens.
"""

from joulediff import _region


def steps(n):
    """Yields 0, 1, ... at least `n` times, and more where the recorder needs more steps.

    A step lasts from one value to the next. Only the first loop of a process is recorded.
    """
    return _region.steps(n, "onnx")


def work(unit, per_step):
    """Says what one step does, as ("token", 8192): a unit's name and how many of it."""
    _region.state.work = (str(unit), float(per_step))


_region.state.explicit = True
