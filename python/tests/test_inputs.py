"""The text of a step's inputs: what is told, what is folded, what is left out."""

import collections
import dataclasses

import numpy
import torch

from joulediff._inputs import text_of


class LayerCache:
    def __init__(self, length):
        self.keys, self.values, self.length = torch.zeros(1, length), torch.zeros(1, length), length


class ModelCache:
    def __init__(self, layers, length):
        self.name, self.layers = "cache", [LayerCache(length) for _ in range(layers)]


@dataclasses.dataclass
class Batch:
    tokens: torch.Tensor
    names: list
    mask: torch.Tensor | None = None


def test_shapes_and_dtypes_by_position_and_name():
    x, mask = torch.zeros(2, 8, dtype=torch.long), torch.ones(8, dtype=torch.bool)
    assert text_of((x, 3, "text", None), {"mask": mask, "cache": False}) == "int64[2,8], mask=bool[8]"
    assert text_of((torch.tensor(1.0),), {}) == "float32[]"
    assert text_of((numpy.zeros((3, 2)),), {}) == "float64[3,2]"


def test_what_has_no_tensor_is_unknown():
    assert text_of((), {}) is None
    assert text_of((1, [2, 3], {"a": "b"}, object(), torch.nn.Linear(2, 2)), {"x": None}) is None


def test_nested():
    x = torch.zeros(3)
    assert text_of(([x, (x, 1)], {"a": x, "b": 2}), {}) == "(float32[3], (float32[3])), (a=float32[3])"
    assert text_of((Batch(x, ["a"]),), {}) == "Batch(tokens=float32[3])"
    assert text_of((collections.UserDict(a=x),), {}) == "(a=float32[3])"
    endless = [x]
    endless.append(endless)
    assert text_of((endless,), {}).startswith("(float32[3], (float32[3], ")


def test_long_lists_and_caches_are_folded():
    x = torch.zeros(3)
    assert text_of(([x] * 30,), {}) == "30xfloat32[3]"
    assert text_of(([x] * 29 + [x[:1]],), {}) == "30x(float32[3]..float32[1])"
    layer = "LayerCache(keys=float32[1,{0}], values=float32[1,{0}])"
    for length in (7, 8):
        told = text_of((), {"past": ModelCache(24, length)})
        assert told == f"past=ModelCache(layers=24x{layer.format(length)})"


def test_an_object_that_objects_is_unknown():
    class Odd(dict):
        def items(self):
            raise ValueError

    assert text_of((Odd(a=torch.zeros(2)),), {}) is None
