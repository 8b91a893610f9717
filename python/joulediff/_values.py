"""The values pass: every operator of one step with the fingerprints of what it reads and writes.

Inputs are read before the operator runs and outputs after, so that an in-place operator has both the
old value and the new. Each distinct set of elements of a version is hashed once; views of it only add
a geometry, and a sample where the axes are new. Operators are kept until the step ends, because a
later read of a partly written storage makes one more output of the operator that wrote last.

The replay of a CUDA graph says neither what it reads nor what it writes. It is taken to read the buffers
that the step has filled for it, and to have written what it was seen to write while it was captured; of
a capture that nobody saw, what is found changed, or comes up for the first time, after the replay.
"""

import ctypes
import dataclasses
import itertools

import torch

from joulediff import _abi, _fingerprint, _operator, _settings, _storages
from joulediff._context import Context
from joulediff._mode import OperatorMode

_storage_ids = itertools.count(1)
_value_ids = itertools.count(1)


@dataclasses.dataclass
class Operation:
    """One operator of the step; inputs and outputs are value ids."""

    index: int
    name: str
    facts: dict
    inputs: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Call:
    """What is known of an operator before it runs."""

    operation: Operation
    form: _operator.Form
    written: list
    owners: set  # storages that its arguments have
    constant: bool  # reads nothing but constants
    launch_inputs: list  # of a Triton launch: (tensor, region, hash before or None)


def _kind(storage, sources, region, tensor):
    """What a fingerprint is kept by."""
    return (storage.id, sources[0].version if sources else 0, region, tensor.dtype,
            tensor.is_conj() + 2 * tensor.is_neg())


def _on_device(tensor):
    """Where a graph can have written."""
    return tensor.is_cuda or not torch.cuda.is_available()


class Values(OperatorMode):
    """Operators are reported by end(). `models`: outermost modules seen."""

    def __init__(self, recorder, fail):
        super().__init__(fail)
        self.recorder = recorder
        self.models = []
        self.unreadable = 0
        self._operations = {}  # by index
        self._storages = _storages.Storages(_storage_ids)
        self._values = {}  # (storage, version, geometry) -> value id
        self._roles = {}  # value id -> role
        self._made = set()  # value ids that an operator of the step has as output or input
        self._fingerprints = {}
        self._sampled = {}
        self._weights = set()  # addresses of the storages of parameters and buffers
        self._graph = None  # the last replay of a CUDA graph: (operation, addresses written or None)
        self._context = Context(recorder, self._add_model)

    def begin(self):
        self._context.enter()
        self._undo.callback(self._context.leave)
        super().begin()

    def end(self):
        super().end()
        for _, operation in sorted(self._operations.items()):
            inputs = list(dict.fromkeys(operation.inputs))
            self.recorder.operator(operation.index, operation.name, inputs,
                                   list(dict.fromkeys(operation.outputs)), operation.facts)
        if self.unreadable:
            self.recorder.diagnostic("warning", "unreadable_tensors",
                                     f"{self.unreadable} tensors had no values that we can read")
        self._storages.clear()

    def operations(self):
        """Every operator of the step, by index."""
        return self._operations

    def settings(self):
        """{key: value} of the first outermost module."""
        return _settings.of_model(self.models[0]) if self.models else {}

    def _add_model(self, module):
        self.models.append(module)
        for tensor in itertools.chain(module.parameters(), module.buffers()):
            if _storages.has_storage(tensor):
                self._weights.add(tensor.untyped_storage()._cdata)

    def around(self, index, form, function, args, kwargs):
        call = self.guarded(self._before, index, form, function, args, kwargs)
        result = function(*args, **kwargs)
        if call is not None:
            self.guarded(self._after, call, result)
        return result

    def _before(self, index, form, function, args, kwargs):
        launch = function if isinstance(function, _operator.Launch) else None
        facts = self._context.describe(index, lambda i: self._operations[i].facts)
        facts["arguments"] = _operator.arguments(form, args, kwargs, launch)
        facts["signature"] = _operator.signature(form, args, kwargs, facts["arguments"])
        facts["view"] = False
        call = Call(Operation(index, form.name, facts), form, [], set(), True, [])
        self._operations[index] = call.operation
        if isinstance(function, _operator.GraphReplay):
            self._before_graph(call, function.capture)
        for _, value, written, read, _ in _operator.bound(form, args, kwargs):
            for tensor in _operator.tensors_in(value):
                if not self._readable(tensor):
                    continue
                storage = self._storages.get(tensor) or self._adopt(tensor, call.operation)
                self._see_graph(storage, tensor)
                call.owners.add(storage)
                if written:
                    call.written.append(tensor)
                if launch is not None:
                    self._before_launch(call, storage, tensor)
                elif read:
                    self._read(call, storage, tensor)
        return call

    def _read(self, call, storage, tensor):
        value = self._value(storage, tensor, reader=True)
        self._made.add(value)
        call.operation.inputs.append(value)
        call.constant = call.constant and self._roles[value] == _abi.CONSTANT

    def _after(self, call, result):
        operation, outputs = call.operation, []
        role = _abi.COMPUTED
        if call.form.random and call.constant:
            role = _abi.INPUT
        elif call.constant and not call.launch_inputs:
            role = _abi.CONSTANT
        written = call.written + [t for t, before in self._changed(call)]
        for tensor in written:
            storage = self._storages.get(tensor) or self._adopt(tensor, operation)
            write = storage.write(_storages.region_of(tensor), operation, role)
            write.value = self._value(storage, tensor)
            storage.graph = None
            outputs.append(write.value)
        view = not written
        for tensor in _operator.tensors_in(result):
            if not self._readable(tensor):
                view = False
                continue
            storage = self._storages.get(tensor)
            if storage is None:
                storage = self._storages.add(tensor, role)
                storage.made = True
                storage.write(None, operation, role, call.form.blank)
            aliased = storage in call.owners
            view = view and aliased
            value = self._value(storage, tensor)
            if storage.writes and storage.writes[-1].operation is operation:
                storage.writes[-1].value = storage.writes[-1].value or value
            outputs.append(value)
        operation.facts["view"] = view and bool(outputs)
        # A value has one maker: a view that is already known, or is its own input, is not made again.
        for value in outputs:
            if value not in self._made:
                self._made.add(value)
                operation.outputs.append(value)

    def _readable(self, tensor):
        if _storages.has_storage(tensor):
            return True
        self.unreadable += 1
        return False

    def _adopt(self, tensor, operation):
        """A storage from before the step, or one that reached us from outside the dispatcher.

        What an optimizer has from before the step is its state: a weight, and no input.
        """
        weight = (isinstance(tensor, torch.nn.Parameter) or (tensor.requires_grad and tensor.is_leaf)
                  or tensor.untyped_storage()._cdata in self._weights
                  or operation.facts["phase"] == "optimizer")
        number = operation.name == "aten.lift_fresh.default" and tensor.dim() == 0
        role = _abi.PARAMETER if weight else _abi.CONSTANT if number else _abi.INPUT
        storage = self._storages.add(tensor, role)
        if role == _abi.INPUT and self._graph is not None:
            graph, written = self._graph
            if _on_device(tensor) and (written is None or storage.weak.cdata in written):
                storage.write(None, graph, _abi.COMPUTED)
        return storage

    def _before_graph(self, call, capture):
        call.operation.facts["arguments"]["operators"] = capture.operators
        for storage in self._storages:
            if not storage.made and storage.writes and storage.writes[-1].value is not None:
                value = storage.writes[-1].value
                self._made.add(value)
                call.operation.inputs.append(value)
        written = capture.written or None
        self._graph = call.operation, written
        for storage in self._storages:
            if storage.role != _abi.PARAMETER and (written is None or storage.weak.cdata in written):
                storage.graph = call.operation

    def _see_graph(self, storage, tensor):
        """Has the graph that ran since written what is now read or written?"""
        if storage.graph is None or not _on_device(tensor):
            return
        region = _storages.region_of(tensor)
        known = self._fingerprints.get(_kind(storage, storage.sources(region), region, tensor))
        if known is None or tuple(known.own) != tuple(
                self._read_values(self._fingerprint, tensor, known).own):
            storage.write(None, storage.graph, _abi.COMPUTED)
            storage.graph = None

    def _value(self, storage, tensor, reader=False):
        """The id of what the tensor holds now, reported to the recorder when it is new."""
        region = _storages.region_of(tensor)
        sources = storage.sources(region)
        version = sources[0].version if sources else 0
        twist = tensor.is_conj() + 2 * tensor.is_neg()
        geometry = (int(tensor.storage_offset()), tuple(map(int, tensor.shape)),
                    tuple(map(int, tensor.stride())), tensor.dtype, twist)
        key = storage.id, version, geometry
        if key in self._values:
            return self._values[key]
        value = self._values[key] = next(_value_ids)
        whole = sources and _storages.relation(sources[0].region, region) == "covers"
        if whole or not sources:
            role = sources[0].role if sources else storage.role
        else:
            constant = (all(s.role == _abi.CONSTANT for s in sources)
                        and _storages.relation(sources[-1].region, region) == "covers")
            role = _abi.CONSTANT if constant else _abi.COMPUTED
        self._roles[value] = role
        blank = bool(whole and sources[0].blank)
        if reader and sources and not blank:
            self._join(value, storage, geometry, sources, whole)
        self._report(value, storage, version, region, geometry, role, tensor, blank)
        return value

    def _join(self, value, storage, geometry, sources, whole):
        """A read that nothing made as such: the last write made it, from the parts before it."""
        last = sources[0].operation
        last.outputs.append(value)
        if whole:
            return
        parts = []
        for write in sources[1:]:
            known = self._values.get((storage.id, write.version, geometry))
            if known is not None:
                parts.append(known)
                break
            if write.value is not None and not write.blank:
                parts.append(write.value)
        else:
            parts.append(self._values.get((storage.id, 0, geometry)))
        made_here = set(last.outputs)
        last.inputs.extend(p for p in parts if p is not None and p not in made_here)

    def _report(self, value, storage, version, region, geometry, role, tensor, blank):
        offset, shape, stride, dtype, twist = geometry
        kind = storage.id, version, region, dtype, twist
        if not blank and kind not in self._fingerprints:
            self._fingerprints[kind] = self._read_values(self._fingerprint, tensor,
                                                         _abi.Fingerprint())
        fingerprint = None if blank else self._fingerprints[kind]
        if fingerprint is None or fingerprint.dtype == 0:  # unknown values equal no others
            fingerprint = _abi.Fingerprint(count=tensor.numel(), dtype=_fingerprint.code(dtype))
            fingerprint.own[0], fingerprint.own[1] = value & 0xFFFFFFFF, ~value & 0xFFFFFFFF
        sample = None
        if not blank and role in (_abi.COMPUTED, _abi.INPUT) and len(shape) <= _abi.MAX_DIMS:
            axes = tuple(sorted(n for n, s in zip(shape, stride, strict=True) if n != 1 and s))
            if axes not in self._sampled.setdefault(kind, set()):
                self._sampled[kind].add(axes)
                sample = self._read_values(_fingerprint.sample, tensor, None)
        if len(shape) > _abi.MAX_DIMS:
            size = tensor.element_size()
            shape = [n for n, _ in region.axes] or [1]
            stride = [max(1, s // size) for _, s in region.axes] or [1]
            shape[-1] //= size
            if len(shape) > _abi.MAX_DIMS:
                shape, stride = [tensor.numel()], [1]
        dims = len(shape)
        info = _abi.TensorInfo(id=value, storage=storage.id, version=version, offset=offset,
                               dims=dims, role=role, fingerprint=fingerprint)
        info.shape[:dims], info.stride[:dims] = shape, stride
        if sample is not None:
            info.sample_count = len(sample)
            info.sample = ctypes.cast(sample, ctypes.POINTER(ctypes.c_float))
        self.recorder.tensor(ctypes.byref(info))

    def _fingerprint(self, tensor):
        return _fingerprint.fingerprint(tensor, self.recorder)

    def _read_values(self, function, tensor, otherwise):
        """function(tensor); `otherwise` for a dtype that the device cannot compute with."""
        try:
            return function(tensor)
        except NotImplementedError:
            self.unreadable += 1
            return otherwise

    def _before_launch(self, call, storage, tensor):
        """A kernel's schema says nothing: what it wrote is what differs afterwards."""
        region = _storages.region_of(tensor)
        sources = storage.sources(region)
        if sources and sources[0].blank:
            call.launch_inputs.append((tensor, None))
            return
        self._read(call, storage, tensor)
        own = self._fingerprints.get(_kind(storage, sources, region, tensor))
        call.launch_inputs.append((tensor, tuple(own.own) if own is not None else ()))

    def _changed(self, call):
        for tensor, before in call.launch_inputs:
            if before is None or tuple(self._fingerprint(tensor).own) != before:
                yield tensor, before
