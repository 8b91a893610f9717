"""The operators of one call of a compiled computation, made of what its twin evaluated.

An operator is what runs together: the equations of one kernel, or one equation. It reads what they read
and did not make, and makes what others read. The order is that of the data; groups that read one another
(the compiler computed something in another way than the equations say) are one operator.
"""

import dataclasses
import enum
import hashlib
import json
import math

import jax
import numpy as np
from jax.extend import core

from joulediff import _jax_twin

_LONGEST_LIST = 64
_HEAVY = ("dot_general", "ragged_dot_general", "conv_general_dilated", "scan", "while", "pallas_call", "fft",
          "sort", "cholesky")
_LIGHT = frozenset(("convert_element_type", "broadcast_in_dim", "reshape", "transpose", "squeeze", "slice",
                    "expand_dims", "copy", "copy_p"))


@dataclasses.dataclass(eq=False)
class Operator:
    """records: in the order of the program; inputs, outputs: Values. index: in the step."""

    records: list
    inputs: list
    outputs: list
    kernels: list
    root: object  # the record that it is named and placed after
    index: int = -1

    @property
    def name(self):
        work = {r.name for r in self.records} - _LIGHT
        if len(self.records) > 1 and len(work) > 1 and self.root.name not in _HEAVY:
            return "jax.fusion"
        return "jax." + (self.root.name if self.root.name in work or not work else next(iter(work)))

    @property
    def view(self):
        return all(r.view for r in self.records) and all(v.base is not None for v in self.outputs)

    @property
    def replayable(self):
        return all(r.compute is not None for r in self.records)

    def arguments(self):
        found = {}
        if len(self.records) == 1:
            found = parameters(self.records[0])
        else:
            found["operators"] = plain([f"jax.{r.name}" for r in self.records])
        if self.kernels:
            found["kernels"] = self.kernels
        return found

    def signature(self):
        """Equal for operators that do the same work on the same shapes."""
        places = {id(v): f"%{i}" for i, v in enumerate(self.inputs)}
        lines = []
        for record in self.records:
            operands = [places.get(id(v), "?") if isinstance(v, _jax_twin.Value) else _number(v)
                        for v in record.inputs]
            for value in record.outputs:
                places[id(value)] = f"%{len(places)}"
            facts = json.dumps(parameters(record), sort_keys=True, separators=(",", ":"))
            lines.append(f"{record.name}({','.join(operands)};{facts})")
        made = ",".join(places.get(id(v), "?") for v in self.outputs)
        specs = ", ".join(_spec(v) for v in self.inputs)
        if len(self.records) == 1:
            return f"{self.name}({specs}; {lines[0].partition(';')[2][:-1]})"
        digest = hashlib.blake2s(f"{lines}->{made}".encode(), digest_size=8).hexdigest()
        names = ",".join(r.name for r in self.records)
        return f"{self.name}({specs}; {{\"operators\":\"{names}\",\"structure\":\"{digest}\"}})"

    def function(self):
        """What computes the outputs from the inputs, for jit."""
        records, inputs, outputs = self.records, self.inputs, self.outputs

        def compute(*arrays):
            known = {id(v): a for v, a in zip(inputs, arrays, strict=True)}
            for record in records:
                operands = [known[id(v)] if isinstance(v, _jax_twin.Value) else v for v in record.inputs]
                for value, array in zip(record.outputs, record.compute(*operands), strict=True):
                    known[id(value)] = array
            return [known[id(v)] for v in outputs]

        return compute


class Call:
    """Hears what the twin evaluates; observe(value) is called for each that is not inside an operator."""

    def __init__(self, plan, observe):
        self._plan, self._observe = plan, observe
        self.records = []
        self._seen = set()  # ids of Values observed
        self._kept = []

    def on_read(self, value, record):
        if not self._inside(value, record):
            self._see(value)

    def on_made(self, record):
        self.records.append(record)

    def finish(self, outputs):
        """[Operator] in an order in which each value is made before it is read."""
        for value in outputs:
            self._see(value)
        return self._operators()

    def _see(self, value):
        if id(value) not in self._seen:
            self._seen.add(id(value))
            self._kept.append(value)
            inside = value.base is not None and id(value.base) not in self._seen
            if inside or (value.base is not None and self._groups(value.maker)):
                value.alone()  # it shows what is in no memory, or a kernel has moved it
            self._observe(value)

    def _groups(self, record):
        return self._plan.groups_of(record.number)

    def _inside(self, value, record):
        maker, mine = value.maker, self._groups(record)
        return (maker is not None and bool(mine) and maker.scope == record.scope
                and mine <= self._groups(maker))

    def _owner(self, record):
        group = self._plan.owner_of(record.number)
        return (record.position,) if group is None else (group, record.scope)

    def _operators(self):
        made = {}  # key of a group -> the values that it makes for others
        for value in self._kept:
            if value.maker is not None:
                made.setdefault(self._owner(value.maker), []).append(value)
        live = {key: self._live(key, [v.maker for v in values]) for key, values in made.items()}
        merged = _merge_cycles(live, {key: self._read(live[key]) for key in live}, self._owner)
        found = []
        for keys in merged:
            records = {r.position: r for key in keys for r in live[key]}
            records = [records[i] for i in sorted(records)]
            mine = set(map(id, records))
            inputs = dict.fromkeys(v for v in self._read(records) if id(v.maker) not in mine)
            outputs = list(dict.fromkeys(v for key in keys for v in made[key]))
            found.append(Operator(records, list(inputs), outputs, self._kernels(keys),
                                  self._root(keys, records)))
        self._add_loop_kernels(found)
        return found

    def _live(self, key, roots):
        """What a group has to compute for its values."""
        found, waiting = {}, list(roots)
        while waiting:
            record = waiting.pop()
            if record.position in found:
                continue
            found[record.position] = record
            for value in record.inputs:
                maker = getattr(value, "maker", None)
                if (maker is not None and len(key) == 2 and maker.scope == key[1]
                        and key[0] in self._groups(maker)):
                    waiting.append(maker)
        return [found[i] for i in sorted(found)]

    @staticmethod
    def _read(records):
        mine = set(map(id, records))
        return [v for r in records for v in r.inputs
                if isinstance(v, _jax_twin.Value) and id(v.maker) not in mine]

    def _kernels(self, keys):
        return [name for key in keys if len(key) == 2 for name in self._plan.groups[key[0]].kernels]

    def _root(self, keys, records):
        heavy = [r for r in records if r.name in _HEAVY]
        named = [r for key in keys if len(key) == 2 for r in records
                 if r.number == self._plan.groups[key[0]].own]
        return (heavy or named or [r for r in records if r.name not in _LIGHT] or records)[-1]

    def _add_loop_kernels(self, operators):
        """What slices and stacks for a loop runs under no equation's name: with the loop's first slice."""
        told = set()
        for operator in operators:
            root = operator.root
            if root.number in self._plan.loop_kernels and root.number not in told:
                told.add(root.number)
                operator.kernels = operator.kernels + self._plan.loop_kernels[root.number]


def _merge_cycles(live, reads, owner):
    """Keys of live in lists, in the order of the data; a list of several is a cycle (Tarjan 1972)."""
    after = {key: [] for key in live}
    for key, values in reads.items():
        for value in values:
            source = owner(value.maker) if value.maker is not None else None
            if source in live and source != key:
                after[key].append(source)
    order, low, path, on_path, found = {}, {}, [], set(), []
    for start in sorted(live, key=lambda k: live[k][-1].position):
        work = [(start, iter(after[start]))] if start not in order else []
        if work:
            order[start] = low[start] = len(order)
            path.append(start)
            on_path.add(start)
        while work:
            key, rest = work[-1]
            for source in rest:
                if source not in order:
                    order[source] = low[source] = len(order)
                    path.append(source)
                    on_path.add(source)
                    work.append((source, iter(after[source])))
                    break
                if source in on_path:
                    low[key] = min(low[key], order[source])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[key])
                if low[key] == order[key]:
                    group = []
                    while not group or group[-1] != key:
                        group.append(path.pop())
                        on_path.discard(group[-1])
                    found.append(group[::-1])
    return found


def parameters(record):
    """The parameters of an equation and its operands that are numbers, as JSON."""
    found = {}
    for key, value in record.params.items():
        text = plain(value)
        if text is not None and text != "UnspecifiedValue":
            found[key] = text
    numbers = {str(i): _number(v) for i, v in enumerate(record.inputs) if not isinstance(v, _jax_twin.Value)}
    if numbers:
        found["numbers"] = numbers
    return found


def _number(value):
    return str(value.item() if hasattr(value, "item") else value)


def plain(value):
    """A JSON value without addresses, the same in every process."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, core.Jaxpr | core.ClosedJaxpr):
        return hashlib.blake2s(str(value).encode(), digest_size=8).hexdigest()
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value[:_LONGEST_LIST]]
        return items + ["..."] if len(value) > _LONGEST_LIST else items
    if isinstance(value, np.ndarray | jax.Array):
        return None
    return getattr(value, "__name__", None) or type(value).__name__


def _spec(value):
    shape = ",".join(map(str, value.shape))
    stride = ",".join(map(str, value.stride))
    return f"[{shape}]:[{stride}]:{value.dtype}:{value.platform}"
