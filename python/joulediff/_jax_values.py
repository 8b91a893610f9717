"""What the values pass of JAX reports: values with fingerprints, and operators.

Fingerprints are the recorder library's, of memory on the host, to which the values of a device are copied.
Arrays do not change, so that a value is known by its array: what one computation returned and the next is
called with is one value.
"""

import re
import weakref

import jax
import numpy as np

from joulediff import _abi, _jax_frames, _jax_hlo, _jax_twin

_CODES = {"float32": 1, "float64": 2, "float16": 3, "bfloat16": 4, "int8": 5, "int16": 6, "int32": 7,
          "int64": 8, "uint8": 9, "bool": 10, "complex64": 11, "complex128": 12, "float8_e4m3fn": 13,
          "float8_e5m2": 14}
# Read as another dtype that holds the same values, or the same bits for 64 of them.
_READ_AS = {"uint16": "int32", "uint32": "int64", "uint64": "int64", "int4": "int8", "int2": "int8",
            "uint4": "uint8", "uint2": "uint8"}
_NO_WEIGHT = re.compile(r"batch|inputs?\b|data|image|cache|\bkv|past|carry|hidden|tokens?|label|target|mask"
                        r"|key|rng|seed|^x\b|^y\b", re.IGNORECASE)
_WEIGHT = re.compile(r"param|weight|kernel|bias|variables|model|opt|state|^w\d*\b|^b\d*\b", re.IGNORECASE)


def role_of(name, array):
    """What an argument is to the step, by its path ("params['w']") and dtype: weights are floating, and
    lie in a container or are called so.
    """
    name = re.sub(r"^(args\[\d+\]|kwargs(?=\[))", "", name).strip(".")
    if not jax.dtypes.issubdtype(array.dtype, np.inexact) or np.ndim(array) == 0:
        return _abi.INPUT
    if _NO_WEIGHT.search(name) and not _WEIGHT.match(name):
        return _abi.INPUT
    return _abi.PARAMETER if _WEIGHT.search(name) or re.search(r"[\[.]", name) else _abi.INPUT


def host(array):
    """A row-major numpy array of a dtype that fingerprints know, and the dtype's code; (None, 0): unreadable."""
    if not getattr(array, "is_fully_addressable", True):
        return None, 0
    found = np.ascontiguousarray(np.asarray(_jax_twin.physical(array)))
    name = found.dtype.name
    if name in _READ_AS:
        to = _READ_AS[name]
        found = found.view(to) if name == "uint64" else found.astype(to)
        name = to
    elif name.startswith("float") and name not in _CODES:  # other formats of a byte or less
        found, name = found.astype("float32"), "float32"
    return found, _CODES.get(name, 0)


class Arrays:
    """The values of a step by the arrays of the program that hold them."""

    def __init__(self):
        self._known = {}  # id of an array -> (weak reference, Value)

    def find(self, array):
        weak, value = self._known.get(id(array), (None, None))
        return value if weak is not None and weak() is array else None

    def keep(self, array, value):
        """From now on the array is the value, as it lies there."""
        try:
            self._known[id(array)] = weakref.ref(array), value
        except TypeError:  # a number
            return

    def value_of(self, array, role):
        """A Value of an argument: the one it is known as, or a new one."""
        known = self.find(array)
        if known is None:
            value = _jax_twin.value_of(array, role)
            self.keep(array, value)
            return value
        value = _jax_twin.value_of(array, known.role)
        value.id = known.id
        if known.base is None and known.storage.number is not None:
            value.storage.number = known.storage.number
        return value


def facts_of(operator, stacks, call, forwards):
    """The facts of an operator. call: the frames of the computation's call; forwards: {place: index} of
    what the step has computed forward, to which this operator is added. What is transposed keeps its place.
    """
    root = operator.root
    scopes, backward = [], False
    for name_stack in root.stack:
        found, back = _jax_hlo.unmarked(name_stack)
        scopes, backward = scopes + found, backward or back
    facts = {"phase": "backward" if backward else "forward", "module": ".".join(scopes),
             "arguments": operator.arguments(), "signature": operator.signature(), "view": operator.view}
    frames = _jax_frames.frames_of(root.places, call)
    if not frames:
        return facts
    facts["stack"] = stack = stacks.id_of_frames(frames)
    if not backward:
        forwards.setdefault((stack, root.name), operator.index)
        forwards.setdefault(stack, operator.index)
    elif (forward := forwards.get((stack, root.name), forwards.get(stack))) is not None:
        facts["forward"] = forward
    return facts
