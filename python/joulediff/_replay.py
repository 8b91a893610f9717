"""The replay pass: each operator that matters is run back to back on clones of its inputs.

The first dispatch of an operator is where its inputs are at hand; afterwards it runs once as the program
wants it.
"""

import torch

from joulediff import _operator, _storages
from joulediff._executions import Executions, InTurns, Spin, cache_bytes, clone, result_bytes, spans, turns
from joulediff._measure import Idle, Measurements, choose
from joulediff._mode import OperatorMode, synchronize
from joulediff._order import describe

_COLD = "joulediff.cold "


class Replay(OperatorMode):
    """One step in which the wanted operators are measured at their first dispatch."""

    def __init__(self, recorder, fail, path, operators, trace=None):
        """trace: when its first step began, when its last one ended (ns), and how many it had."""
        super().__init__(fail)
        self.recorder, self._operators, self._trace = recorder, operators, trace
        self._measurements = Measurements(recorder, path, synchronize)
        self._other_shape = 0

    def begin(self):
        floors = [("joulediff.idle", Idle())]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            floors.insert(0, ("joulediff.static", Spin()))
        wanted = choose(self._operators, self.recorder.operator_seconds)
        self._measurements.begin(wanted, floors, bool(cache_bytes()), self._trace)
        super().begin()

    def leave(self):
        super().leave()
        self._measurements.release()

    def end(self):
        super().end()
        self._measurements.end()
        if self._other_shape:
            self.recorder.diagnostic(
                "note", "replayed_at_another_shape",
                f"{self._other_shape} operators came with other shapes in the replay step")

    def around(self, index, form, function, args, kwargs):
        if self._measurements.wanted and form.replayable:
            self.guarded(self._replay, index, form, function, args, kwargs)
        return function(*args, **kwargs)

    def _planned(self, index, form, function, args, kwargs):
        """The wanted signature that this call stands for, or None."""
        signature = describe(form, function, args, kwargs)
        if signature in self._measurements.wanted:
            return signature
        name, planned, _ = self._operators.get(index, ("", "", False))
        if name == form.name and self._measurements.wanted.get(planned) == index:
            self._other_shape += 1  # a cache that grows: the steps have not the same shapes
            return planned
        return None

    def _replay(self, index, form, function, args, kwargs):
        signature = self._planned(index, form, function, args, kwargs)
        if signature is None:
            return
        del self._measurements.wanted[signature]
        random = torch.get_rng_state()
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        random_cuda = torch.cuda.get_rng_state() if cuda else None
        try:
            self._measurements.guarded(self._on_clones, signature, form, function, args, kwargs)
        except RuntimeError as error:  # out of memory, or an operator that refuses clones
            self._measurements.not_replayed(signature, str(error))
        finally:
            torch.set_rng_state(random)
            if cuda:
                torch.cuda.set_rng_state(random_cuda)

    def _on_clones(self, signature, form, function, args, kwargs):
        tensors = (*_operator.tensors_in(args), *_operator.tensors_in(kwargs))
        copies = spans(tensors)
        new_args, new_kwargs = clone(list(args), copies), clone(dict(kwargs), copies)
        writes = [t for _, value, written, _, _ in _operator.bound(form, args, kwargs) if written
                  for t in _operator.tensors_in(value) if _storages.has_storage(t)]
        if isinstance(function, _operator.Launch):
            writes = list(tensors)
        touched = {t.untyped_storage()._cdata for t in writes} & copies.keys()
        fresh = {key: copies[key][1].clone() for key in touched}

        def refresh():  # an operator in place must not run away
            for key, content in fresh.items():
                copies[key][1].copy_(content)

        executions = Executions(lambda: function(*new_args, **new_kwargs), tensors, form.capturable)
        self._measurements.measure(signature, executions, refresh)
        if signature in self._measurements.cold:
            self._on_cold_clones(signature, form, function, args, kwargs, touched)

    def _on_cold_clones(self, signature, form, function, args, kwargs, touched):
        """Again, so that no operand is in the cache; where it would not be warm anyway."""
        tensors = (*_operator.tensors_in(args), *_operator.tensors_in(kwargs))

        def prepared():
            copies = spans(tensors)
            new_args, new_kwargs = clone(list(args), copies), clone(dict(kwargs), copies)
            return copies, lambda: function(*new_args, **new_kwargs)

        copies, call = prepared()
        own = {kept.untyped_storage()._cdata: kept for _, kept in copies.values()}
        size = sum(kept.numel() for kept in own.values()) + result_bytes(call(), own)
        count = turns(size, cache_bytes())
        if count == 0:
            return
        sets = [prepared() for _ in range(count)]

        fresh = {key: kept.clone() for key, (_, kept) in spans(tensors).items() if key in touched}

        def refresh():
            for copies, _ in sets:
                for key, content in fresh.items():
                    copies[key][1].copy_(content)

        executions = Executions(InTurns([call for _, call in sets]), tensors, form.capturable, count)
        self._measurements.measure(_COLD + signature, executions, refresh)
