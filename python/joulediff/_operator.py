"""What one call of an operator says of itself: its form, tensors, arguments and signature.

A call is a callable with args and kwargs: an overload of the dispatcher, a higher-order operator, or
the launch of a user's Triton kernel (then `function` is a Launch).
"""

import dataclasses
import enum
import json
import math
import re

import torch

_WRITES_WITHOUT_READING = frozenset((
    "copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "exponential_", "log_normal_",
    "cauchy_", "geometric_", "_foreach_copy_", "_foreach_zero_", "set_", "eye_",
))
# Made in the likeness of an argument whose values are not read.
_LIKENESS = re.compile(r"(empty|zeros|ones|full|rand|randn|randint)_like|new_(empty|zeros|ones|full)")
_NOT_WORK = frozenset(("prim", "prims_internal", "profiler"))
_LONGEST_LIST = 64


@dataclasses.dataclass(frozen=True)
class Form:
    """What the schema says of an operator; `arguments` are (name, written, read, default)."""

    name: str
    arguments: tuple
    random: bool = False
    blank: bool = False  # makes memory without writing it
    composite: bool = False  # the framework would take it apart itself
    counted: bool = True
    replayable: bool = True
    capturable: bool = True  # neither random nor dependent on the data's values


class Launch:
    """A user's Triton kernel, bound to its grid: called with the kernel's own arguments."""

    def __init__(self, kernel, run, options):
        self.kernel, self.run, self.options = kernel, run, options
        self.name = "triton." + getattr(kernel, "__name__", "kernel")

    def __call__(self, *args, **kwargs):
        return self.run(self.kernel, *args, **self.options, **kwargs)


class GraphReplay(Launch):
    """The launch of a captured CUDA graph, which takes no arguments: it reads and writes where it did."""

    def __init__(self, graph, run, capture):
        super().__init__(graph, run, {"graph": capture.number})
        self.name, self.capture = "cuda_graph.replay", capture

    def __call__(self):
        return self.run(self.kernel)


_forms = {}


def form_of(function):
    form = _forms.get(function)
    if form is None and isinstance(function, Launch):
        names = getattr(function.kernel, "arg_names", ())  # a launch is a new object each time
        # A graph that runs once more than the program wants can leave other values behind.
        graph = isinstance(function, GraphReplay)
        return Form(function.name, tuple((n, False, True, dataclasses.MISSING) for n in names),
                    replayable=not graph)
    if form is None:
        form = _forms[function] = _read_form(function)
    return form


def _read_form(function):
    schema = getattr(function, "_schema", None)
    if schema is None:
        return Form(f"higher_order.{getattr(function, '__name__', function)}", (), capturable=False)
    short = schema.name.split("::")[-1]
    arguments, likeness = [], _LIKENESS.match(short)
    for a in schema.arguments:
        written = a.alias_info is not None and a.alias_info.is_write
        blind = written and (a.is_out or short in _WRITES_WITHOUT_READING
                             or (short == "bernoulli_" and a.name == "self"))
        default = a.default_value if a.has_default_value() else dataclasses.MISSING
        arguments.append((a.name, written, not blind and not likeness, default))
    tags = {str(tag).split(".")[-1] for tag in function.tags}
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    composite = (has(schema.name + ("." + schema.overload_name if schema.overload_name else ""),
                     "CompositeImplicitAutograd")
                 and not any(has(function.name(), key) for key in ("CPU", "CUDA")))
    random = "nondeterministic_seeded" in tags
    varying = {"dynamic_output_shape", "data_dependent_output"} & tags
    return Form(
        name=str(function), arguments=tuple(arguments), random=random,
        blank=short.startswith(("empty", "new_empty")), composite=composite,
        counted=function.namespace not in _NOT_WORK and not short.startswith("sym_"),
        replayable="c10d" not in function.namespace, capturable=not random and not varying)


def bound(form, args, kwargs):
    """(name, value, written, read, default) of each argument given, in order."""
    known = dict((a[0], a) for a in form.arguments)
    for i, value in enumerate(args):
        if i < len(form.arguments):
            name, written, read, default = form.arguments[i]
        else:
            name, written, read, default = str(i), False, True, dataclasses.MISSING
        yield name, value, written, read, default
    for key, value in kwargs.items():
        name, written, read, default = known.get(key, (key, False, True, dataclasses.MISSING))
        yield name, value, written, read, default


def tensors_in(value):
    """The tensors of an argument or a result, in order."""
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(t for item in value for t in tensors_in(item))
    if isinstance(value, dict):
        return tuple(t for item in value.values() for t in tensors_in(item))
    return ()


def _short(dtype):
    return str(dtype).removeprefix("torch.")


def plain(value):
    """A JSON value without addresses, the same in every process; tensors are left out as null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, int | torch.SymInt):
        return int(value)
    if isinstance(value, float | torch.SymFloat):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return _short(value)
    if isinstance(value, torch.Tensor):
        return None
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value[:_LONGEST_LIST]]
        return items + ["..."] if len(value) > _LONGEST_LIST else items
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in list(value.items())[:_LONGEST_LIST]}
    return getattr(value, "__name__", None) or type(value).__name__


def arguments(form, args, kwargs, launch=None):
    """The arguments that are not tensors and not their defaults, by name."""
    result = {}
    for name, value, _, _, default in bound(form, args, kwargs):
        if isinstance(value, torch.Tensor) or value is default:
            continue
        if isinstance(value, list | tuple) and tensors_in(value):
            continue
        text = plain(value)
        if default is dataclasses.MISSING or text != plain(default):
            result[name] = text
    if launch is not None:
        result.update((key, plain(value)) for key, value in launch.options.items()
                      if key != "warmup" and not callable(value))
    return result


def _shape_text(tensor):
    shape = ",".join(str(int(n)) for n in tensor.shape)
    try:
        stride = ",".join(str(int(n)) for n in tensor.stride())
    except RuntimeError:  # a layout without strides
        stride = _short(tensor.layout)
    return f"[{shape}]:[{stride}]:{_short(tensor.dtype)}:{tensor.device.type}"


def _is_float(value):
    if isinstance(value, list):
        return bool(value) and all(map(_is_float, value))
    return isinstance(value, float) or value in ("inf", "-inf", "nan", "...")


def signature(form, args, kwargs, facts):
    """name(shapes:strides:dtypes:device; arguments): equal for calls that do the same work.

    Floating-point arguments are left out: a learning rate changes from step to step, the work does not.
    """
    specs, last, count = [], None, 0
    for tensor in (*tensors_in(args), *tensors_in(kwargs), None):
        text = _shape_text(tensor) if tensor is not None else None
        if text != last and count:
            specs.append(last if count == 1 else f"{count}x{last}")
            count = 0
        last, count = text, count + 1
    facts = {key: value for key, value in facts.items() if not _is_float(value)}
    extra = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return f"{form.name}({', '.join(specs)}; {extra})"
