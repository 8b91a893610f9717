"""Which equations move no data: what they make is their operand, seen in another way."""

import math


def dense(shape):
    """Strides of a row-major array, in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(1, n)
    return tuple(reversed(strides))


def keeps(name, params, value):
    """An equation that hands its operand on as it is."""
    if name == "convert_element_type":
        return params["new_dtype"] == value.array.dtype and not params.get("sharding")
    return name == "reshape" and tuple(params["new_sizes"]) == value.shape and params.get("dimensions") is None


def shown(primitive, params, value):
    """(offset, shape, stride) of a view of a Value; None where data has to move."""
    shape, stride, offset = value.shape, value.stride, value.offset
    if primitive == "transpose":
        order = params["permutation"]
        return offset, tuple(shape[i] for i in order), tuple(stride[i] for i in order)
    if primitive == "broadcast_in_dim":
        to, axes = params["shape"], params["broadcast_dimensions"]
        steps = [0] * len(to)
        for axis, n, step in zip(axes, shape, stride, strict=True):
            steps[axis] = step if n == to[axis] else 0
        for axis, n in enumerate(to):
            steps[axis] = steps[axis] if axis in axes or n != 1 else 1
        return offset, tuple(to), tuple(steps)
    if primitive == "squeeze":
        kept = [i for i in range(len(shape)) if i not in params["dimensions"]]
        return offset, tuple(shape[i] for i in kept), tuple(stride[i] for i in kept)
    if primitive == "slice":
        step = params["strides"] or (1,) * len(shape)
        start, end = params["start_indices"], params["limit_indices"]
        return (offset + sum(a * s for a, s in zip(start, stride, strict=True)),
                tuple(max(0, -(-(b - a) // k)) for a, b, k in zip(start, end, step, strict=True)),
                tuple(s * k for s, k in zip(stride, step, strict=True)))
    if primitive == "reshape" and params.get("dimensions") is None:
        to = _reshaped(shape, stride, tuple(params["new_sizes"]))
        return None if to is None else (offset, tuple(params["new_sizes"]), to)
    return None


def _reshaped(shape, stride, to):
    """The strides of a reshaped view, or None where there is none."""
    if math.prod(shape) == 0:
        return dense(to)
    axes = [(n, s) for n, s in zip(shape, stride, strict=True) if n != 1]
    merged = []
    for n, s in axes:
        if merged and merged[-1][1] == n * s and s:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    result, at = [0] * len(to), len(to) - 1
    for n, s in reversed(merged):
        while n > 1:
            while at >= 0 and to[at] == 1:
                result[at], at = 1, at - 1
            if at < 0 or n % to[at]:
                return None
            result[at], s, n, at = s, s * to[at], n // to[at], at - 1
    return tuple(r if n != 1 else max(1, r) for r, n in zip(result, to, strict=True))
