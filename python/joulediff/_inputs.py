"""The shapes and dtypes of a step's inputs as one line, which tells a prefill from a decode.

Computed between two steps of the trace, too, so that it has to be cheap: a handler is chosen once for
each type, the text of a shape is made once, and of a long list or a cache only the ends are looked at.
Numbers and text are left out, and so are modules: they are no inputs whose shape makes kernels differ.
"""

import collections.abc
import dataclasses
import sys

_LISTED = 4  # items of a list that are told one by one
_FIELDS = 24
_DEEPEST = 5
_LONGEST = 1000

_handlers = {}
_shapes = {}
_cache_fields = {}  # type -> names


def text_of(args, kwargs):
    """"float32[2,8], mask=bool[8]"; None where there is no tensor, or no telling."""
    try:
        parts = [text for value in args if (text := _text(value, 0))]
        for name, value in kwargs.items():
            if text := _text(value, 0):
                parts.append(f"{name}={text}")
    except Exception:  # noqa: BLE001  somebody else's objects
        return None
    return ", ".join(parts)[:_LONGEST] or None


def _text(value, depth):
    kind = type(value)
    handler = _handlers.get(kind)
    if handler is None:
        handler = _handlers[kind] = _choose(kind)
    return handler(value, depth) if depth < _DEEPEST else ""


def _choose(kind):
    if issubclass(kind, type | str | bytes | int | float | complex) or kind is type(None):
        return _nothing
    if hasattr(kind, "shape") and hasattr(kind, "dtype"):
        return _of_tensor
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.nn.Module):
        return _nothing
    if any("Cache" in base.__name__ for base in kind.__mro__):
        return _of_cache
    if issubclass(kind, collections.abc.Mapping):
        return lambda value, depth: _of_fields("", list(value.items())[:_FIELDS], depth)
    if issubclass(kind, list | tuple):
        return _of_list
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)][:_FIELDS]
        return lambda value, depth: _of_fields(
            kind.__name__, [(name, getattr(value, name, None)) for name in names], depth)
    return _nothing


def _nothing(_value, _depth):
    return ""


def _of_tensor(value, _depth):
    key = value.shape, value.dtype
    text = _shapes.get(key)
    if text is None:
        shape = ",".join(str(int(n)) for n in value.shape)
        text = f"{str(value.dtype).removeprefix('torch.')}[{shape}]"
        if len(_shapes) < 10_000:
            _shapes[key] = text
    return text


def _of_list(value, depth):
    if len(value) <= _LISTED:
        texts = [text for item in value if (text := _text(item, depth + 1))]
        return f"({', '.join(texts)})" if texts else ""
    first, last = _text(value[0], depth + 1), _text(value[-1], depth + 1)
    if not first and not last:
        return ""
    return f"{len(value)}x{first}" if first == last else f"{len(value)}x({first}..{last})"


def _of_fields(name, fields, depth):
    texts = [f"{key}={text}" for key, value in fields if (text := _text(value, depth + 1))]
    return f"{name}({', '.join(texts)})" if texts else ""


def _of_cache(value, depth):
    """The fields in which a cache of this kind was seen to hold tensors."""
    if isinstance(value, list | tuple):
        return _of_list(value, depth)
    kind, fields = type(value), getattr(value, "__dict__", {})
    known = _cache_fields.get(kind, ())
    text = _of_fields(kind.__name__, [(name, fields.get(name)) for name in known], depth)
    if not text:
        told = [name for name, held in list(fields.items())[:_FIELDS] if _text(held, depth + 1)]
        _cache_fields[kind] = told
        text = _of_fields(kind.__name__, [(name, fields[name]) for name in told], depth)
    return text
