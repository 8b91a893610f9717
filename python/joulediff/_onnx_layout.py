"""ONNX Runtime's layout of images on a processor: channels in blocks of 8 or 16, the innermost axis.

Such a tensor says that its shape is [images, channels, height, width] all the same, and is told in that order.
"""

import numpy as np

_DOMAIN = "com.microsoft.nchwc"
_BLOCKS = (16, 8, 4, 32)


def is_blocked(node, inputs):
    """Whether what a node makes lies in blocks; inputs: Values."""
    if node.domain == _DOMAIN:
        return node.type != "ReorderOutput"
    return any(value.blocked for value in inputs)


def plain(array, block):
    """In the order that the shape says; as it is where the channels are no whole blocks."""
    images, channels, height, width = array.shape
    if channels % block:
        return array
    parts = array.reshape(images, channels // block, height, width, block)
    return np.ascontiguousarray(parts.transpose(0, 1, 4, 2, 3)).reshape(array.shape)


def block(model, made):
    """How many channels lie together, as those nodes show that bring tensors back in order; 0: none is there.

    made: {name: Tensor}.
    """
    left = set(_BLOCKS)
    seen = False
    for node in model.nodes:
        if node.domain != _DOMAIN or node.type != "ReorderOutput":
            continue
        before, after = made.get(node.inputs[0]), made.get(node.outputs[0])
        if before is None or after is None or before.array is None or len(before.shape) != 4:
            continue
        seen = True
        want = after.array.transpose(0, 3, 1, 2) if node.attributes.get("channels_last") else after.array
        left = {b for b in left if before.shape[1] % b == 0 and np.array_equal(
            plain(before.array, b)[:, :want.shape[1]], want, equal_nan=True)} or left
        if len(left) == 1:
            break
    return next((b for b in _BLOCKS if b in left), 0) if seen else 0
