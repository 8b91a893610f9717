"""Views by strides against numpy's own, in random chains."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jax")
from joulediff._jax_views import dense, keeps, shown  # noqa: E402


def change(x, choose):
    """(primitive, parameters, what numpy makes of it)."""
    kind = choose.choice(["transpose", "slice", "squeeze", "reshape", "broadcast_in_dim"])
    if kind == "transpose":
        order = choose.sample(range(x.ndim), x.ndim)
        return kind, {"permutation": order}, x.transpose(order)
    if kind == "slice":
        first = [choose.randrange(n) for n in x.shape]
        last = [choose.randint(i + 1, n) for i, n in zip(first, x.shape, strict=True)]
        step = [choose.randint(1, 2) for _ in first]
        cut = tuple(slice(*ends) for ends in zip(first, last, step, strict=True))
        return kind, {"start_indices": first, "limit_indices": last, "strides": step}, x[cut]
    if kind == "squeeze":
        ones = tuple(i for i, n in enumerate(x.shape) if n == 1)
        return kind, {"dimensions": ones}, x.squeeze(ones)
    if kind == "reshape":
        size, to = x.size, []
        while size > 1:
            to.append(choose.choice([n for n in (2, 3, 4, 6, size) if size % n == 0]))
            size //= to[-1]
        to.insert(choose.randint(0, len(to)), 1)
        return kind, {"new_sizes": tuple(to), "dimensions": None}, x.reshape(to)
    to = (choose.choice([2, 3]), *x.shape)
    return kind, {"shape": to, "broadcast_dimensions": tuple(range(1, len(to)))}, np.broadcast_to(x, to)


def test_a_view_shows_what_the_equation_makes():
    choose, views, moved = random.Random(1), 0, 0
    for _ in range(1500):
        shape = tuple(choose.choice([1, 2, 3, 4, 6]) for _ in range(choose.randint(1, 4)))
        memory = np.arange(np.prod(shape))
        x, value = memory.reshape(shape), SimpleNamespace(shape=shape, stride=dense(shape), offset=0)
        for _ in range(4):
            kind, parameters, x = change(x, choose)
            view = shown(kind, parameters, value)
            if view is None:
                moved += 1
                assert kind == "reshape"
                break
            offset, to, stride = view
            seen = np.lib.stride_tricks.as_strided(memory[offset:], to, [s * memory.itemsize for s in stride])
            assert to == x.shape and np.array_equal(seen, x), (kind, parameters, value)
            value = SimpleNamespace(shape=to, stride=stride, offset=offset)
            views += 1
    assert views > 3000 and moved > 50


def test_data_that_moves_is_no_view():
    value = SimpleNamespace(shape=(2, 3), stride=(1, 2), offset=0, array=np.zeros((2, 3), np.float32))
    assert shown("reshape", {"new_sizes": (6,), "dimensions": None}, value) is None
    assert shown("rev", {"dimensions": (0,)}, value) is None and shown("add", {}, value) is None
    assert keeps("convert_element_type", {"new_dtype": np.dtype("float32")}, value)
    assert not keeps("convert_element_type", {"new_dtype": np.dtype("float16")}, value)
