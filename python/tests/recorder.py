"""A recorder that keeps what it is told, in place of the library."""

import ctypes
import json

from joulediff import _abi


class Library:
    """The functions of the C ABI; `tensors`, `operators`, `facts`, `steps`, ... are what they heard."""

    def __init__(self, seconds=1.0):
        self.tensors, self.operators, self.facts, self.steps = {}, {}, [], []
        self.kernels, self.brackets, self.took, self.replays = [], [], [], []
        self.depth, self.clock = 0, 0

        def now():
            self.clock += 1000
            return self.clock

        def tensor(reference):
            info = reference._obj
            copy = _abi.TensorInfo.from_buffer_copy(info)
            assert info.id not in self.tensors
            copy.values = [info.sample[i] for i in range(info.sample_count)]
            self.tensors[info.id] = copy

        def operator(index, name, inputs, n, outputs, m, text):
            assert index not in self.operators
            self.operators[index] = Operator(index, name.decode(), list(inputs)[:n],
                                             list(outputs)[:m], json.loads(text))

        def begin(step, index, name):
            self.depth += 1
            self.brackets.append((step, index, name.decode()))

        def end():
            self.depth -= 1

        def kernels(which):
            self.kernels.append(which)
            return 0

        self.jd_active, self.jd_now = (lambda: _abi.ABI), now
        self.jd_fact = lambda topic, text: self.facts.append((topic.decode(), json.loads(text)))
        self.jd_step = lambda *step: self.steps.append(step)
        self.jd_tensor, self.jd_operator = tensor, operator
        self.jd_fingerprint_of = self._fingerprint_of
        self.jd_observe = lambda reference, data: self._observe(reference, data)
        self.jd_operator_begin, self.jd_operator_end, self.jd_kernels = begin, end, kernels
        self.jd_operator_took = lambda step, index, name, *when: self.took.append((step, index, name.decode(), *when))
        self.jd_operator_seconds = lambda index: seconds
        self.jd_replay = lambda *replay: self.replays.append(replay)
        self.jd_flush = lambda: None

    @staticmethod
    def _fingerprint_of(reference, data, size):
        """By the other definition of fingerprints that is at hand, torch's."""
        import torch

        from joulediff import _fingerprint

        dtype = next(t for t, code in _fingerprint._CODES.items() if code == reference._obj.dtype)
        values = torch.frombuffer(bytearray(ctypes.string_at(data, size)), dtype=torch.uint8).view(dtype)
        ctypes.pointer(reference._obj)[0] = _fingerprint.fingerprint(values)

    def _observe(self, reference, data):
        """By the other definition of fingerprints that is at hand, torch's."""
        import torch

        from joulediff import _fingerprint

        info = reference._obj
        [kind] = [d for d, code in _fingerprint._CODES.items() if code == info.fingerprint.dtype]
        shape, stride = info.shape[: info.dims], info.stride[: info.dims]
        reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        memory = torch.frombuffer(bytearray(ctypes.string_at(data, reach * kind.itemsize)), dtype=kind)
        x = memory.as_strided(shape, stride)
        info.fingerprint = _fingerprint.fingerprint(x)
        if info.role in (_abi.COMPUTED, _abi.INPUT):
            sample = _fingerprint.sample(x)
            info.sample_count, info.sample = len(sample), ctypes.cast(sample, ctypes.POINTER(ctypes.c_float))
        self.jd_tensor(reference)

    def diagnostics(self):
        return [fields["rule"] for topic, fields in self.facts if topic == "diagnostic"]

    def named(self, name):
        """The operators of that name, in order."""
        return [o for _, o in sorted(self.operators.items()) if o.name == name]

    def shape(self, value):
        info = self.tensors[value]
        return tuple(info.shape[: info.dims])

    def own(self, value):
        return tuple(self.tensors[value].fingerprint.own)


class Operator:
    def __init__(self, index, name, inputs, outputs, facts):
        self.index, self.name, self.inputs, self.outputs = index, name, inputs, outputs
        self.facts = facts
        self.view = facts["view"]

    def __repr__(self):
        return f"{self.index} {self.name} {self.inputs} -> {self.outputs}"


def record_values(function):
    """The Library after one values pass over function()."""
    from joulediff._values import Values

    library = Library()
    errors = []
    mode = Values(_abi.Recorder(library), errors.append)
    mode.begin()
    try:
        function()
    finally:
        mode.end()
    if errors:
        raise errors[0]
    check(library)
    return library


def check(library):
    """What holds for every values pass: a value has one maker, before its readers."""
    maker = {}
    for index, operator in sorted(library.operators.items()):
        for value in operator.outputs:
            assert value in library.tensors
            assert value not in maker, f"{value} is made twice: {maker[value]}, {operator}"
            maker[value] = operator
    for index, operator in sorted(library.operators.items()):
        for value in operator.inputs:
            assert value in library.tensors
            assert value not in operator.outputs, operator
            assert value not in maker or maker[value].index < index, (operator, maker[value])


__all__ = ["Library", "Operator", "record_values", "check"]
