"""The few fields of an ONNX model that the recorder needs, read from its bytes and written without the onnx package.

A model is a message of protobuf. What is not needed stays as it is: nodes and initializers are kept as bytes, from
which models of one node are made. A graph gets more outputs by a second graph behind it: protobuf merges the two.
"""

import dataclasses
import hashlib
import os
import re
import struct

import numpy as np

FLOATING = frozenset((1, 10, 11, 16, 17, 18, 19, 20))
# An element type of ONNX -> its name; as numpy reads its memory; its code in docs/fingerprint.md (0: unknown).
TYPES = {1: ("float32", "f4", 1), 2: ("uint8", "u1", 9), 3: ("int8", "i1", 5), 4: ("uint16", "u2", 7),
         5: ("int16", "i2", 6), 6: ("int32", "i4", 7), 7: ("int64", "i8", 8), 9: ("bool", "?", 10),
         10: ("float16", "f2", 3), 11: ("float64", "f8", 2), 12: ("uint32", "u4", 8), 13: ("uint64", "u8", 8),
         14: ("complex64", "c8", 11), 15: ("complex128", "c16", 12), 16: ("bfloat16", "u2", 4),
         17: ("float8e4m3fn", "u1", 13), 18: ("float8e4m3fnuz", "u1", 0), 19: ("float8e5m2", "u1", 14),
         20: ("float8e5m2fnuz", "u1", 0)}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TENSOR_DATA = {4: "<f4", 10: "<f8", 5: None, 7: None, 11: None}  # float, double, int32, int64, uint64


class Unreadable(Exception):
    """These bytes are no model that we can read."""


@dataclasses.dataclass(eq=False)
class Node:
    """captured: names of the graph around it that its subgraphs read."""

    name: str
    type: str
    domain: str
    inputs: list
    outputs: list
    attributes: dict
    captured: list
    raw: bytes

    @property
    def operator(self):
        """Its name without dots but one, as the reports cut names at the second."""
        return f"{self.domain.replace('.', '_') if self.domain not in ('', 'ai.onnx') else 'onnx'}.{self.type}"


@dataclasses.dataclass(eq=False)
class Initializer:
    """shape: of a tensor of that element type; array(folder): its memory, read-only."""

    type: int
    shape: tuple
    raw: bytes

    def array(self, folder):
        """As numpy reads it (TYPES), row-major; None: not a type that has such memory."""
        if self.type not in TYPES:
            return None
        dtype, count = np.dtype(TYPES[self.type][1]), int(np.prod(self.shape, dtype=np.int64))
        external, numbers = {}, []
        for field, kind, value in fields(self.raw):
            if field == 9:
                return np.frombuffer(value, dtype, count).reshape(self.shape)
            if field == 13:
                entry = {f: str(text, "utf-8") for f, _, text in fields(value)}
                external[entry.get(1)] = entry.get(2)
            elif field in _TENSOR_DATA:
                numbers.append(_numbers(field, kind, value))
        if "location" in external:
            if not count:
                return np.zeros(self.shape, dtype)
            return np.memmap(os.path.join(folder, external["location"]), dtype, "r", int(external.get("offset", 0)),
                             self.shape)
        found = np.concatenate(numbers) if numbers else np.zeros(0)
        if dtype.kind == "c":
            return found.view(dtype).reshape(self.shape)
        if self.type in (10, 16) or dtype.itemsize == 1 and dtype.kind == "u":  # bits, in numbers of 32
            found = found.astype(np.uint16 if dtype.itemsize == 2 else np.uint8).view(dtype)
        return found.astype(dtype).reshape(self.shape)


@dataclasses.dataclass(eq=False)
class Model:
    """A graph whose nodes are in an order in which they can run."""

    nodes: list
    initializers: dict
    inputs: list
    outputs: list
    head: bytes  # version and operator sets


def _numbers(field, kind, value):
    if _TENSOR_DATA[field]:
        return np.frombuffer(struct.pack("<I", value) if kind == _FIXED32 else value, _TENSOR_DATA[field])
    found, at = [value] if kind == _VARINT else [], 0
    while kind == _BYTES and at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return np.array(found, np.uint64).view(np.int64)


def _varint(data, at):
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Unreadable("a number is torn")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at


def fields(data):
    """(field, wire type, value) of a message; of bytes a slice."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        elif kind == _BYTES:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise Unreadable(f"wire type {kind}")
        if at > len(data):
            raise Unreadable("a field is torn")
        yield key >> 3, kind, value


def field(number, value):
    """A field of a message: a number, or bytes."""
    if isinstance(value, int):
        return _packed(number << 3) + _packed(value & 0xFFFFFFFFFFFFFFFF)
    return _packed(number << 3 | _BYTES) + _packed(len(value)) + value


def _packed(number):
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _signed(number):
    return number - (1 << 64) if number >= 1 << 63 else number


def _first(data, wanted, default=b""):
    return next((value for number, _, value in fields(data) if number == wanted), default)


def _attribute(data):
    """(name, a JSON value), of tensors and graphs a digest."""
    name, found = "", None
    lists = {7: [], 8: [], 9: []}
    for number, kind, value in fields(data):
        if number == 1:
            name = str(value, "utf-8")
        elif number == 2:
            found = _short(struct.unpack("<f", struct.pack("<I", value))[0])
        elif number == 3:
            found = _signed(value)
        elif number == 4:
            found = str(value, "utf-8", "replace")
        elif number in (5, 6):
            found = hashlib.blake2s(value, digest_size=8).hexdigest()
        elif number == 7:
            lists[7] += map(_short, _numbers(4, kind, value))
        elif number == 8:
            lists[8] += [int(x) for x in _numbers(7, kind, value)]
        elif number == 9:
            lists[9].append(str(value, "utf-8", "replace"))
    return name, next((items for items in lists.values() if items), found)


def _short(number):
    """A float32 as it was written: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(number)))


def _node(data):
    node = Node("", "", "", [], [], {}, [], data)
    for number, _, value in fields(data):
        if number == 1:
            node.inputs.append(str(value, "utf-8"))
        elif number == 2:
            node.outputs.append(str(value, "utf-8"))
        elif number in (3, 4, 7):
            setattr(node, {3: "name", 4: "type", 7: "domain"}[number], str(value, "utf-8"))
        elif number == 5:
            name, told = _attribute(value)
            node.attributes[name] = told
            for which, _, graph in fields(value):
                if which in (6, 11):
                    node.captured += [n for n in _free(graph) if n not in node.captured]
    return node


def _free(data):
    """Names that a subgraph reads and does not make."""
    known, read = set(), []
    for number, _, value in fields(data):
        if number == 5:
            known.add(str(_first(value, 8), "utf-8"))
        elif number == 11:
            known.add(str(_first(value, 1), "utf-8"))
        elif number == 1:
            node = _node(value)
            read += [*node.inputs, *node.captured]
            known.update(node.outputs)
        elif number == 12:
            read.append(str(_first(value, 1), "utf-8"))
    return [name for name in dict.fromkeys(read) if name and name not in known]


def _initializer(data):
    """(name, Initializer)."""
    name, kind, shape = "", 0, []
    for number, wire, value in fields(data):
        if number == 1:
            shape += [int(n) for n in _numbers(7, wire, value)]
        elif number == 2:
            kind = value
        elif number == 8:
            name = str(value, "utf-8")
    return name, Initializer(kind, tuple(shape), data)


def read(data):
    """The Model of its bytes; Unreadable."""
    model, head = Model([], {}, [], [], b""), b""
    try:
        for number, _, value in fields(data):
            if number in (1, 8):
                head += field(number, value)
            elif number == 7:
                _read_graph(model, value)
    except (UnicodeDecodeError, TypeError, IndexError, ValueError) as error:
        raise Unreadable(str(error)) from error
    model.head = head
    model.inputs = [name for name in model.inputs if name not in model.initializers]
    return model


def _read_graph(model, data):
    for number, _, value in fields(data):
        if number == 1:
            model.nodes.append(_node(value))
        elif number == 5:
            name, found = _initializer(value)
            model.initializers[name] = found
        elif number == 11:
            model.inputs.append(str(_first(value, 1), "utf-8"))
        elif number == 12:
            model.outputs.append(str(_first(value, 1), "utf-8"))


def scopes(data):
    """{a node's name, or a value's: the module in which it is made}, as torch's exporter says it of nodes; {} where
    nobody does.
    """
    found = {}
    try:
        for number, _, graph in fields(memoryview(data)):
            for which, _, node in fields(graph) if number == 7 else ():
                if which == 1:
                    _read_scope(node, found)
    except (Unreadable, UnicodeDecodeError, TypeError, IndexError):  # a model of another format
        return {}
    return found


def _read_scope(node, found):
    names = [str(value, "utf-8") for number, _, value in fields(node) if number in (2, 3)]
    for number, _, entry in fields(node):
        if number == 9 and bytes(_first(entry, 1)) == b"pkg.torch.onnx.name_scopes":
            path = re.findall(r"'([^']*)'", str(_first(entry, 2), "utf-8"))
            found.update(dict.fromkeys(names, path[-2] if len(path) > 1 and path[-2][:1] != "_" else ""))


def more_outputs(model):
    """What is put behind a model's bytes so that every value is an output of it; and all their names, in order."""
    made = [name for node in model.nodes for name in node.outputs if name]
    names = list(dict.fromkeys(n for n in (*made, *model.outputs)))
    return field(7, b"".join(field(12, field(1, n.encode())) for n in names if n not in model.outputs)), names


def alone(model, node, types, copies):
    """A model of that node, so many times over; types: {name: (element type, rank)} of what is no initializer.

    It gives what its last one makes.
    """
    graph = b""
    wanted = [n for n in dict.fromkeys((*node.inputs, *node.captured)) if n]
    for i in range(copies):
        raw = b"".join(field(number, value) for number, _, value in _renamed(node.raw, i if i + 1 < copies else None))
        graph += field(1, raw)
    graph += field(2, b"alone")
    for name in wanted:
        if name in model.initializers:
            graph += field(5, model.initializers[name].raw)
        else:
            kind, rank = types[name]
            shape = field(2, b"".join(field(1, b"") for _ in range(rank)))
            graph += field(11, field(1, name.encode()) + field(2, field(1, field(1, kind) + shape)))
    for name in node.outputs:
        if name:
            graph += field(12, field(1, name.encode()))
    return model.head + field(7, graph)


def _renamed(raw, number):
    """The node's fields, with outputs and name of their own where a number is given."""
    for which, wire, value in fields(raw):
        if number is not None and which in (2, 3) and value:
            value += b"~%d" % number
        if which in (1, 2, 3, 4, 5, 6, 7) and wire in (_VARINT, _BYTES):
            yield which, wire, value
