"""How bench/matching counts."""

import pathlib
import sys

import pytest

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "matching"))

import score  # noqa: E402

TRUTH = """
# A block of two layers.
.             embedding  start
layers.{i}    mul        {i}.square   # the first call in a layer
layers.{i}    mul        {i}.out, -
{i}.{j}.late  mul        {i+1}.{j}
"""


def operator(name, module, *classes, view=False):
    return {"name": name, "module": module, "classes": list(classes), "view": view}


def test_labels_are_those_of_the_calls_in_order():
    operators = [operator("aten.embedding.default", "", 0), operator("aten.mul.Tensor", "layers.0", None),
                 operator("aten.mul.Tensor", "layers.0", 1), operator("aten.mul.Scalar", "layers.0", 2, 3),
                 operator("jax.mul", "layers.11", 4), operator("aten.view.default", "", 9, view=True),
                 operator("aten.mul.Tensor", "4.2.late", 5)]
    labels = score.labels_of(operators, score.read(TRUTH))
    assert labels == {0: {"start"}, 1: {"0.square"}, 2: {"0.out"}, 3: {"- layers.0 aten.mul.Scalar"},
                      4: {"11.square"}, 5: {"5.2"}}


def test_what_no_line_names_is_told():
    with pytest.raises(score.Unannotated, match="layers.0  add"):
        score.labels_of([operator("aten.add.Tensor", "layers.0", 1)], score.read(TRUTH))
    with pytest.raises(ValueError, match="line 1"):
        score.read("only two")


def test_f1_counts_right_wrong_and_missed():
    a = {0: {"x"}, 1: {"y", "y copied"}, 2: {"z"}, 3: {"only in A"}}
    b = {0: {"x"}, 1: {"y"}, 2: {"z"}, 3: {"w"}}
    found = score.score([(0, 0), (1, 1), (3, 3), (7, 2)], a, b)
    assert (found.right, found.wrong, found.missed) == (2, [(["only in A"], ["w"])], ["z"])
    assert found.f1 == pytest.approx(4 / 6)
    assert score.score([(0, 0), (1, 1), (2, 2)], a, b).f1 == 1
