"""The operators of one run of a session, made of what its twin computed."""

import dataclasses
import json
import math
import re

from joulediff import _abi, _onnx_layout, _onnx_model

_LONGEST_LIST = 64
_VIEWS = frozenset(f"onnx.{name}" for name in ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"))
_SIZES = frozenset(("onnx.Shape", "onnx.Size"))  # of a tensor they read no value
_WEIGHTS = _onnx_model.FLOATING | {2, 3, 21, 22}  # and quantised ones


@dataclasses.dataclass(eq=False)
class Storage:
    """Memory: `array` is the Tensor that lies there."""

    array: object
    number: int | None = None


@dataclasses.dataclass(eq=False)
class Value:
    """tensor: as the runtime has it; storage: as it is told, which is the same but for blocked layouts."""

    tensor: object
    role: int
    storage: Storage
    shape: tuple
    stride: tuple
    offset: int = 0
    id: int | None = None
    blocked: bool = False


def value_of(tensor, role, told=None):
    """A Value in memory of its own; told: the Tensor that stands for it, if that is another one."""
    told = told or tensor
    return Value(tensor, role, Storage(told), told.shape, dense(told.shape))


def dense(shape):
    """Strides of a row-major array, in elements."""
    return tuple(max(1, math.prod(shape[i + 1:])) for i in range(len(shape)))


@dataclasses.dataclass(eq=False)
class Operator:
    """One node. named: {name: Value} of what it reads. index: in the step."""

    index: int
    node: object
    named: dict
    weights: set  # names of what is an initializer
    outputs: list
    view: bool

    @property
    def name(self):
        return self.node.operator

    @property
    def inputs(self):
        return list(self.named.values())

    def arguments(self):
        return {name: _plain(value) for name, value in sorted(self.node.attributes.items())}

    def signature(self):
        """Equal for operators that do the same work on the same shapes."""
        specs = [_spec(self.named[name], name in self.weights) if name in self.named else "none"
                 for name in (*self.node.inputs, *self.node.captured)]
        facts = json.dumps(self.arguments(), sort_keys=True, separators=(",", ":"))
        return f"{self.name}({', '.join(specs)}; {facts})"

    def module(self, scopes):
        """The node's name as a path, without what the runtime says in front of it; scopes: {a node's or value's
        name: where the model says that it is made}.
        """
        path = re.sub(r"[/.]+", ".", self.node.name.rpartition("fused ")[2]).strip(".")
        names = (self.node.name, self.node.name.partition("/")[0], *self.node.outputs)
        scope = next((scopes[name] for name in names if scopes.get(name)), "")
        return f"{scope}.{path}" if scope else path


def _spec(value, weight):
    shape, stride = (",".join(map(str, numbers)) for numbers in (value.tensor.shape, dense(value.tensor.shape)))
    return f"[{shape}]:[{stride}]:{value.tensor.dtype}:cpu{':weight' if weight else ''}"


def _plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        items = [_plain(item) for item in value[:_LONGEST_LIST]]
        return items + ["..."] if len(value) > _LONGEST_LIST else items
    return value


class Values:
    """The values of a step: what one session gave and another is given is one value, known by its bits."""

    def __init__(self):
        self._known, self._weights = {}, {}

    def given(self, tensor):
        """The Value of what the program gives a session."""
        key = tensor.key()
        if key is None:
            return value_of(tensor, _abi.INPUT)
        known = self._known.setdefault(key, value_of(tensor, _abi.INPUT))
        known.tensor = tensor
        return known

    def keep(self, value, tensor):
        """The program has got this value as that tensor, and may give it to another session."""
        key = tensor.key()
        if key is not None and not value.blocked:
            self._known[key] = value

    def weight(self, twin, name):
        if (id(twin), name) not in self._weights:
            tensor = twin.weight(name)
            weight = tensor.type in _WEIGHTS and math.prod(tensor.shape) > 1
            self._weights[id(twin), name] = value_of(tensor, _abi.PARAMETER if weight else _abi.CONSTANT)
        return self._weights[id(twin), name]

    def operators(self, twin, given, made, first):
        """([Operator], {name: Value}); given, made: {name: Tensor}, from the program and of the twin; first: the
        index of the first one.
        """
        env, found = {name: self.given(tensor) for name, tensor in given.items()}, []
        block = _onnx_layout.block(twin.model, made)
        for node in twin.model.nodes:
            named = {}
            for name in (*node.inputs, *node.captured):
                if name and name not in env and name in twin.model.initializers:
                    env[name] = self.weight(twin, name)
                if name in env:
                    named[name] = env[name]
            outputs = _outputs(node, named, made, block)
            env.update(outputs)
            view = node.operator in _VIEWS and bool(outputs)
            found.append(Operator(first + len(found), node, named, twin.model.initializers.keys() - given.keys(),
                                  list(outputs.values()), view))
        return found, env


def _outputs(node, named, made, block):
    """{name: Value} of what a node made."""
    constant = node.operator in _SIZES or (all(v.role == _abi.CONSTANT for v in named.values())
                                           and not node.type.startswith("Random"))
    role = _abi.CONSTANT if constant else _abi.COMPUTED
    blocked = _onnx_layout.is_blocked(node, named.values())
    result = {}
    for name in node.outputs:
        tensor = made.get(name)
        if tensor is None:  # optional, and not there
            continue
        base = named.get(node.inputs[0]) if node.inputs and node.operator in _VIEWS else None
        if base is not None and base.tensor.type == tensor.type and not base.blocked:
            # Where the shape is computed, what computes it belongs to this node: a view has no inputs but its memory.
            alias = all(v is base or v.tensor.given is None for v in named.values())
            storage = base.storage if alias else Storage(tensor)
            result[name] = Value(tensor, base.role, storage, tensor.shape, dense(tensor.shape))
        elif blocked and block and len(tensor.shape) == 4 and tensor.array is not None:
            told = dataclasses.replace(tensor, array=_onnx_layout.plain(tensor.array, block))
            result[name] = value_of(tensor, role, told)
            result[name].blocked = True
        else:
            result[name] = value_of(tensor, role)
            result[name].blocked = blocked
    return result


def facts_of(operator, stack, scopes):
    return {"phase": "forward", "module": operator.module(scopes), "arguments": operator.arguments(),
            "signature": operator.signature(), "view": operator.view, "stack": stack}


def opaque(index, given, results):
    """A whole run whose session cannot be looked into, as one operator; given: {name: Value}."""
    node = _onnx_model.Node("", "InferenceSession.run", "onnxruntime", list(given), [], {}, [], b"")
    return Operator(index, node, given, set(), [value_of(t, _abi.COMPUTED) for t in results if t is not None], False)


__all__ = ["Operator", "Storage", "Value", "Values", "dense", "facts_of", "opaque", "value_of"]
