"""The twin of a session: what it executes, as a session of our own that gives every node's outputs.

ONNX Runtime writes the graph that it has made of a model (fused, constants folded, laid out for this processor) when
it is asked to. A second session of the program's model and options is made for that, and let go at once. The graph is
then loaded without any more optimisation, every value an output; and its nodes one by one.
"""

import collections
import contextlib
import ctypes
import dataclasses
import hashlib
import itertools
import math
import mmap
import os
import tempfile
import time

import numpy as np
import onnxruntime

from joulediff import _onnx_model, _onnx_region

_FATAL_ONLY = 4  # what is wrong with a run the program's own session says
_SMALL = 100e-6  # seconds: so short a node is made many times in one run, so that Python's way there is paid once
_COPIES = 16
_MOST_BYTES = 1 << 26  # of what they make
_THREADS = 512  # of all sessions of one node that are open
_DEFAULTS = {"session.optimized_model_external_initializers_min_size_in_bytes": ("1024",),
             "session.save_model_format": ("ONNX",), "session.load_model_format": ("ONNX",),
             "session.force_spinning_stop": ("0",)}  # where nothing is said
_numbers = itertools.count()
_TYPE_OF = {name: kind for kind, (name, _, _) in _onnx_model.TYPES.items()}
_TYPE_OF |= {"float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20}


@dataclasses.dataclass(eq=False)
class Tensor:
    """array: its memory as numpy reads it, row-major; None: not to be read. type: of ONNX. given: how a binding is
    given it, (method, arguments after the name).
    """

    array: object
    shape: tuple
    type: int
    given: tuple

    @property
    def dtype(self):
        return _onnx_model.TYPES[self.type][0] if self.type in _onnx_model.TYPES else f"onnx{self.type}"

    def key(self):
        """Equal for tensors of the same type, shape and bits."""
        if self.array is None:
            return None
        return self.type, self.shape, hashlib.blake2b(np.ascontiguousarray(self.array).data, digest_size=16).digest()


def host(tensor):
    """What fingerprints are made of: a row-major array and its dtype's code; (None, 0): unreadable."""
    if tensor is None or tensor.array is None:
        return None, 0
    array, code = tensor.array, _onnx_model.TYPES[tensor.type][2]
    if tensor.type in (4, 12):  # unsigned: as the same numbers, or the same bits of 64
        array = array.astype("i4" if tensor.type == 4 else "i8")
    return array, code


def of_array(array):
    """The Tensor of a numpy array that the program gives."""
    array = np.asarray(array)
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    kind = _TYPE_OF.get(array.dtype.name, 8 if array.dtype.kind in "OUS" else 0)
    raw = array.view(_onnx_model.TYPES[kind][1]) if kind in _onnx_model.TYPES else None
    return Tensor(raw, array.shape, kind, ("bind_cpu_input", (array,)))


def of_value(value):
    """The Tensor of an OrtValue; one without a shape for what is none (a sequence, a map); None: nothing."""
    if not isinstance(value, onnxruntime.OrtValue):
        value = onnxruntime.OrtValue(value)
    if not value.has_value():
        return None
    given = "bind_ortvalue_input", (value,)
    if not value.is_tensor():
        return Tensor(None, (), 0, given)
    kind, shape = value.element_type(), tuple(value.shape())
    if kind not in _onnx_model.TYPES:
        return Tensor(None, shape, kind, given)
    if value.device_name().lower() != "cpu":
        return Tensor(value.numpy() if kind <= 15 else None, shape, kind, given)
    return Tensor(_at(value.data_ptr(), shape, kind) if math.prod(shape) else _nothing(shape, kind), shape, kind, given)


def _at(address, shape, kind):
    dtype = np.dtype(_onnx_model.TYPES[kind][1])
    memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)


def _nothing(shape, kind):
    return np.zeros(shape, _onnx_model.TYPES[kind][1])


def of_given(method, args):
    """The Tensor of what a binding is given."""
    if method == "bind_cpu_input":
        return of_array(args[0])
    if method == "bind_ortvalue_input":
        return of_value(args[0])
    device, _, kind, shape, address = args
    number = kind if isinstance(kind, int) else _TYPE_OF.get(np.dtype(kind).name, 0)
    shape = tuple(shape)
    there = device.lower() == "cpu" and number in _onnx_model.TYPES
    array = (_at(address, shape, number) if math.prod(shape) else _nothing(shape, number)) if there else None
    return Tensor(array, shape, number, (method, args))


class Twin:
    """Of one session of the program. model: what it executes; names: all values."""

    def __init__(self, session):
        """RuntimeError and its like where the runtime cannot write the session's graph down; Unreadable."""
        self._session = session
        self._folder = tempfile.TemporaryDirectory(prefix="joulediff-")
        self.folder = self._folder.name
        self._source = getattr(session, "_model_path", None) or getattr(session, "_model_bytes", None)
        if self._source is None:
            raise RuntimeError("the session does not say what it was made of")
        self._required = {i.name for i in session.get_inputs() if not i.type.startswith("optional")}
        self._initial = False  # the program's own options are needed: they know its libraries of operators
        try:
            data = self._optimised()
        except Exception:  # noqa: BLE001  each kind of failure is one of its own
            if getattr(session, "_sess_options_initial", None) is None:
                raise
            self._initial = True
            data = self._optimised()
        self.model = _onnx_model.read(data)
        self.scopes = self._scopes()
        more, self.names = _onnx_model.more_outputs(self.model)
        self._whole = self._write(data, more)
        self._open = None
        self._pieces = collections.OrderedDict()  # signature -> Piece

    @property
    def on_host(self):
        return list(self._session.get_providers()) == ["CPUExecutionProvider"]

    def _scopes(self):
        if isinstance(self._source, bytes):
            return _onnx_model.scopes(self._source)
        with open(self._source, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            with memoryview(data) as view:
                return _onnx_model.scopes(view)

    def weight(self, name):
        """The Tensor of an initializer."""
        found = self.model.initializers[name]
        return Tensor(found.array(self.folder), found.shape, found.type, None)

    @contextlib.contextmanager
    def _options(self, entries, **changes):
        """Options like the program's with some changed; its own are as they were afterwards."""
        inner = getattr(self._session, "_sess", None)
        options = (self._session._sess_options_initial if self._initial
                   else inner.session_options if inner is not None else self._session.get_session_options())
        changes = {"log_severity_level": _FATAL_ONLY, "enable_profiling": False, "optimized_model_filepath": "",
                   **changes}
        before = {name: getattr(options, name) for name in changes}
        try:
            for name, value in changes.items():
                setattr(options, name, value)
            with _entries(options, entries, self._initial):
                yield options
        finally:
            for name, value in before.items():
                setattr(options, name, value)

    def _make(self, source, options, **more):
        providers = list(self._session.get_providers())
        known = self._session.get_provider_options() or {}
        with _onnx_region.ours():
            return onnxruntime.InferenceSession(source, options, providers=providers, enable_fallback=0,
                                                provider_options=[known.get(name, {}) for name in providers], **more)

    def _optimised(self):
        path = os.path.join(self.folder, "optimised.onnx")
        # What was outside the model has to leave it again, as it is sought in the folder (1.17); shapes must not.
        entries = {"session.optimized_model_external_initializers_file_name": "weights.bin",
                   "session.optimized_model_external_initializers_min_size_in_bytes": "128",
                   "session.save_model_format": "ONNX"}
        with self._options(entries, optimized_model_filepath=path) as options:
            self._make(self._source, options, **_onnx_region.made.get(self._session, {}))
        with open(path, "rb") as file:
            return file.read()

    def _write(self, *parts):
        path = os.path.join(self.folder, f"{next(_numbers)}.onnx")
        with open(path, "wb") as file:
            file.writelines(parts)
        return path

    def _load(self, path):
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        sequential = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        entries = {"session.load_model_format": "ONNX", "session.force_spinning_stop": "1",
                   "session.optimized_model_external_initializers_file_name": ""}
        with self._options(entries, graph_optimization_level=level, execution_mode=sequential) as options:
            return self._make(path, options)

    def run(self, given):
        """{name: Tensor} of all that is computed; given: {name: Tensor}."""
        missing = self._required - given.keys()
        if missing:
            raise ValueError(f"it is not given {', '.join(sorted(missing))}")
        if self._open is None:
            self._open = self._load(self._whole)
        return run(self._open, bind(self._open, given, self.names), self.names)

    def piece(self, operator, signature):
        """The Piece of an operator, which was made before or is made now."""
        if signature in self._pieces:
            self._pieces.move_to_end(signature)
        else:
            with self._options({}) as options:
                threads = options.intra_op_num_threads or os.cpu_count() or 1
            while len(self._pieces) >= max(4, min(64, _THREADS // threads)):
                self._pieces.popitem(last=False)
            self._pieces[signature] = Piece(self, operator)
        return self._pieces[signature]

    def close_piece(self, signature):
        self._pieces.pop(signature, None)

    def alone(self, operator, copies):
        """(a session of that operator's node, `copies` times over, its binding)."""
        given = {name: value.tensor for name, value in operator.named.items() if name not in self.model.initializers}
        for name, tensor in given.items():
            if not tensor.type or tensor.given is None:
                raise ValueError(f"its input {name} is no tensor that it can be given")
        types = {name: (tensor.type, len(tensor.shape)) for name, tensor in given.items()}
        path = self._write(_onnx_model.alone(self.model, operator.node, types, copies))
        try:
            session = self._load(path)
        finally:
            os.remove(path)
        return session, bind(session, given, [n for n in operator.node.outputs if n])

    def close(self):
        """Sessions, with their threads, are let go; what is read stays."""
        self._open = None
        self._pieces.clear()


@contextlib.contextmanager
def _entries(options, entries, restore):
    """The options with these entries of their configuration; what is changed of the program's own is put back."""
    before = {}
    for name, value in entries.items():
        try:
            known = options.get_session_config_entry(name)
        except Exception:  # noqa: BLE001  it has none
            known = None
        if known != value and (known or value not in _DEFAULTS.get(name, ("",))):
            before[name] = known or _DEFAULTS.get(name, ("",))[0]
            options.add_session_config_entry(name, value)
    try:
        yield
    finally:
        for name, value in before.items() if restore else ():
            options.add_session_config_entry(name, value)


def bind(session, given, outputs):
    """given: {name: Tensor}."""
    with _onnx_region.ours():
        binding = session.io_binding()
        for name, tensor in given.items():
            method, args = tensor.given
            getattr(binding, method)(name, *args)
        for name in outputs:
            binding.bind_output(name)
    return binding


def run(session, binding, names):
    """{name: Tensor} of the outputs."""
    with _onnx_region.ours():
        session.run_with_iobinding(binding)
        return dict(zip(names, map(of_value, binding.get_outputs()), strict=True))


class Piece:
    """An operator as a session of its own: what the runtime makes of this node, on its inputs in the program."""

    def __init__(self, twin, operator):
        self.copies = 1
        self._session, self._binding = twin.alone(operator, 1)
        self.run()
        begin = time.perf_counter()
        self.run()
        size = sum(math.prod(v.tensor.shape) * 8 for v in (*operator.inputs, *operator.outputs))
        if time.perf_counter() - begin < _SMALL and size * _COPIES <= _MOST_BYTES:
            self._session, self._binding = twin.alone(operator, _COPIES)
            self.copies = _COPIES
            self.run()

    def run(self):
        """`copies` times."""
        with _onnx_region.ours():
            self._session.run_with_iobinding(self._binding)
