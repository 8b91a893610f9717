"""The order pass: brackets around operators, so that kernels are charged to them, and no more.

One of its steps also notes each operator's signature, outside the brackets, for the replay: the first
one with the inputs' shapes of the values pass, else the first.
"""

from joulediff import _operator, _storages
from joulediff._mode import OperatorMode


class Order(OperatorMode):
    """`operators`: index -> (name, signature, may be replayed and moves data) of the step that was noted."""

    def __init__(self, recorder, fail):
        super().__init__(fail)
        self.recorder = recorder
        self.step = 0
        self.operators = {}
        self._noting, self._alike = True, False

    def begin_step(self, step, alike):
        """alike: the step's inputs have the shapes that the values pass saw."""
        self.step = step
        self._noting = not self.operators or (alike and not self._alike)
        if self._noting:
            self.operators, self._alike = {}, alike
        self.begin()

    def around(self, index, form, function, args, kwargs):
        name = form.name.encode()
        before = None
        if self._noting:
            before = self.guarded(_describe, form, function, args, kwargs)
        self.recorder.operator_begin(self.step, index, name)
        try:
            result = function(*args, **kwargs)
        finally:
            self.recorder.operator_end()
        if before is not None:
            self.guarded(self._note, index, form, before, result)
        return result

    def _note(self, index, form, before, result):
        signature, owners, writes = before
        outputs = [t for t in _operator.tensors_in(result) if _storages.has_storage(t)]
        view = not writes and bool(outputs) and all(
            t.untyped_storage()._cdata in owners for t in outputs)
        self.operators[index] = form.name, signature, form.replayable and not view


def describe(form, function, args, kwargs):
    """The signature of a call, as the values pass gives it."""
    launch = function if isinstance(function, _operator.Launch) else None
    return _operator.signature(form, args, kwargs,
                               _operator.arguments(form, args, kwargs, launch))


def _describe(form, function, args, kwargs):
    owners = {t.untyped_storage()._cdata
              for t in (*_operator.tensors_in(args), *_operator.tensors_in(kwargs))
              if _storages.has_storage(t)}
    writes = (isinstance(function, _operator.Launch)
              or any(written for _, _, written, _, _ in _operator.bound(form, args, kwargs)))
    return describe(form, function, args, kwargs), owners, writes
