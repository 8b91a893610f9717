"""The eager twin of a compiled computation: its jaxpr, one equation after the other.

Calls, loops and branches are entered: a scan is unrolled, a while makes as many trips as it takes, of a
cond the branch that is taken is seen, and what is left are the equations that compute something. What
moves no data is a view: it has the memory of what it shows. Random numbers come from keys, which are
values; what a callback returned to the real computation is what it returns here, so that it runs once.
"""

import collections
import contextlib
import dataclasses
import functools

import jax
import numpy as np
from jax.extend import core

from joulediff import _abi, _jax_frames
from joulediff._jax_views import dense, keeps, shown

MOST_RECORDS = 30_000  # of one call; loops that would make more are one operator
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
          "remat": "jaxpr", "checkpoint": "jaxpr", "remat2": "jaxpr", "custom_jvp_call": "call_jaxpr",
          "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr", "shard_map": "jaxpr"}
_SEPARATE = frozenset(("jit", "pjit"))  # traced by themselves: their frames end where they are called
SAME = frozenset(("stop_gradient", "sharding_constraint", "optimization_barrier", "pvary", "mesh_cast"))
_SILENT = frozenset(("debug_callback", "debug_print", "inspect_sharding"))
ONCE = _SILENT | {"io_callback", "pure_callback"}


@dataclasses.dataclass(eq=False)
class Storage:
    """Memory: `array` is what lies there, row-major; a view keeps it alive."""

    array: object
    number: int | None = None


@dataclasses.dataclass(eq=False)
class Value:
    """`array` until its last reader has read it. offset and stride in elements of the storage."""

    array: object
    role: int
    storage: Storage
    offset: int
    shape: tuple
    stride: tuple
    maker: object = None  # Record
    base: object = None  # of a view: the Value whose memory it shows
    id: int | None = None
    dtype: str = ""
    platform: str = ""

    def __post_init__(self):
        self.dtype = str(self.array.dtype)
        self.platform = self.array.platform() if hasattr(self.array, "platform") else "cpu"

    def alone(self):
        """In memory of its own, no view any more."""
        self.storage, self.base, self.offset, self.stride = Storage(self.array), None, 0, dense(self.shape)


@dataclasses.dataclass(eq=False)
class Record:
    """An equation that was evaluated. inputs: a Value or a plain number each.

    scope: the iterations of the loops around it. places: the source infos that lead to it, innermost
    first, each of a function that was traced by itself, and whether that is the program's. compute: None
    if it cannot be run again.
    """

    position: int
    name: str
    number: int | None
    scope: tuple
    places: tuple
    stack: tuple  # name stacks, outermost first
    params: dict
    inputs: list
    compute: object
    view: bool = False
    outputs: list = dataclasses.field(default_factory=list)


def physical(array):
    """The array, or of random keys the words that they are."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended):
        return jax.random.key_data(array)
    return array


def value_of(array, role, maker=None):
    shape = tuple(physical(array).shape)
    return Value(array, role, Storage(array), 0, shape, dense(shape), maker)


def plain(value):
    return value is None or isinstance(value, bool | int | float | complex | np.generic)


class Twin:
    """Evaluates a closed jaxpr. `numbers`: a Numbered, or None.

    on_read(value, record) is called before an equation runs, on_made(record) after.
    """

    def __init__(self, numbers, callbacks, on_read, on_made, keep=False, given=None):
        """callbacks: id of a callback -> the results it gave, in order; keep: no array is let go of; given:
        what the only equation made, which an eager operation is: JAX refuses to run it within itself.
        """
        self._numbers, self._callbacks, self._keep, self._given = numbers, callbacks, keep, given
        self._on_read, self._on_made = on_read, on_made
        self._scope, self._places, self._stack = (), (), ()
        self._users = True  # what is evaluated is of a function of the program, not of JAX itself
        self.records = 0
        self.opaque = []  # names of what was not entered because it is too long

    def run(self, closed, values):
        """Values in, Values out."""
        jaxpr, consts = closed.jaxpr, closed.consts
        env, held = {}, collections.Counter()
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            role = _abi.PARAMETER if np.ndim(const) else _abi.CONSTANT
            env[var] = value_of(jax.numpy.asarray(const), role)
        env.update(zip(jaxpr.invars, values, strict=True))
        held.update(map(id, env.values()))
        last = {}
        for i, equation in enumerate(jaxpr.eqns):
            for atom in equation.invars:
                if isinstance(atom, core.Var):
                    last[atom] = i
        made = {var for equation in jaxpr.eqns for var in equation.outvars}
        kept = {atom for atom in jaxpr.outvars if isinstance(atom, core.Var)}
        for i, equation in enumerate(jaxpr.eqns):
            inputs = [self._read(env, atom) for atom in equation.invars]
            for var, value in zip(equation.outvars, self._equation(equation, inputs), strict=True):
                env[var] = value
                held[id(value)] += 1
            for var in (*equation.invars, *equation.outvars):
                if isinstance(var, core.Var) and last.get(var, i) == i and var not in kept and var in made:
                    self._release(env.pop(var, None), held)
        return [self._value(self._read(env, atom)) for atom in jaxpr.outvars]

    def _release(self, value, held):
        held[id(value)] -= 1
        if isinstance(value, Value) and not self._keep and not held[id(value)]:
            value.array = None

    def _read(self, env, atom):
        if isinstance(atom, core.Var):
            return env[atom]
        value = atom.val
        return value if plain(value) or np.ndim(value) == 0 else value_of(jax.numpy.asarray(value), _abi.CONSTANT)

    @staticmethod
    def _value(value):
        """What is read as a number, where a value has to be."""
        return value if isinstance(value, Value) else value_of(jax.numpy.asarray(value), _abi.CONSTANT)

    def _equation(self, equation, inputs):
        name = equation.primitive.name
        info = equation.source_info
        if name in _SILENT:
            return []
        if name in SAME and len(inputs) == len(equation.outvars):
            return [self._value(v) for v in inputs]
        enter = {"scan": self._scan, "while": self._while, "cond": self._cond}.get(name)
        if name in CALLS and can_enter(equation):
            enter = self._call
        if enter is None:
            return self._leaf(equation, inputs)
        places, stack, users = self._places, self._stack, self._users
        if name in _SEPARATE:
            self._places = ((info, users), *places)
            self._users = _jax_frames.of_program(equation.params["jaxpr"])
        self._stack = (*stack, info.name_stack)
        try:
            return enter(equation, inputs)
        finally:
            self._places, self._stack, self._users = places, stack, users

    def _call(self, equation, inputs):
        jaxpr = equation.params[CALLS[equation.primitive.name]]
        with equation.ctx.manager:
            return self.run(closed(jaxpr), inputs)

    @contextlib.contextmanager
    def _iteration(self, equation, i):
        before = self._scope
        self._scope = (*before, (self._number(equation), i))
        try:
            yield
        finally:
            self._scope = before

    def _number(self, equation):
        return self._numbers.number_of(equation) if self._numbers is not None else None

    def _scan(self, equation, inputs):
        p = equation.params
        length, (consts, carries) = p["length"], scan_counts(equation)
        body = closed(p["jaxpr"])
        if self.records + length * size(body) > MOST_RECORDS:
            return self._leaf(equation, inputs, too_long=True)
        carry, xs = inputs[consts:consts + carries], inputs[consts + carries:]
        stacks = [[None] * length for _ in equation.outvars[carries:]]
        for i in reversed(range(length)) if p["reverse"] else range(length):
            with self._iteration(equation, i):
                slices = [self._slice(equation, self._value(x), i) for x in xs]
                out = self.run(body, [*inputs[:consts], *carry, *slices])
            for value in slices:
                if not self._keep and all(value is not other for other in out):
                    value.array = None
            carry = out[:carries]
            for stack, value in zip(stacks, out[carries:], strict=True):
                stack[i] = value
        return [*map(self._value, carry), *(self._stacked(equation, stack, var)
                          for stack, var in zip(stacks, equation.outvars[carries:], strict=True))]

    def _slice(self, equation, x, i):
        record = self._record("dynamic_slice", equation, {"scan": i}, [x], lambda a: [a[i]], view=True)
        self._on_read(x, record)
        extra = len(x.shape) - x.array.ndim  # of keys
        if extra:
            return self._made(record, [x.array[i]])[0]
        return self._made(record, [x.array[i]], [(x.offset + i * x.stride[0], x.shape[1:], x.stride[1:])])[0]

    def _stacked(self, equation, parts, var):
        if not parts:
            return value_of(jax.numpy.zeros(var.aval.shape, var.aval.dtype), _abi.CONSTANT)
        record = self._record("dynamic_update_slice", equation, {"scan": len(parts)}, parts,
                              lambda *arrays: [jax.numpy.stack(arrays)])
        return self._finish(record)

    def _while(self, equation, inputs):
        p = equation.params
        n, m = p["cond_nconsts"], p["body_nconsts"]
        test, body = closed(p["cond_jaxpr"]), closed(p["body_jaxpr"])
        carry, i = inputs[n + m:], 0
        most = MOST_RECORDS - size(test) - size(body)
        while True:
            if self.records > most:
                return self._leaf(equation, [*inputs[:n + m], *carry], too_long=True)
            with self._iteration(equation, i):
                [more] = self.run(test, [*inputs[:n], *carry])
                if not bool(more.array):
                    return [self._value(v) for v in carry]
                carry = self.run(body, [*inputs[n:n + m], *carry])
            i += 1

    def _cond(self, equation, inputs):
        branches = equation.params["branches"]
        which = min(max(int(self._value(inputs[0]).array), 0), len(branches) - 1)
        return self.run(closed(branches[which]), inputs[1:])

    def _record(self, name, equation, params, inputs, compute, view=False):
        record = Record(self.records, name, self._number(equation), self._scope,
                        ((equation.source_info, self._users), *self._places), (*self._stack, equation.source_info.name_stack),
                        params, inputs, compute, view)
        self.records += 1
        return record

    def _leaf(self, equation, inputs, too_long=False):
        name, params = equation.primitive.name, equation.params
        if too_long:
            self.opaque.append(name)
        compute = None if name in ONCE else functools.partial(bind, equation)
        record = self._record(name, equation, params, inputs, compute)
        if name in ONCE:
            return self._called_back(equation, record)
        first = next((v for v in inputs if isinstance(v, Value)), None)
        view = None
        if first is not None and first.array.ndim == len(first.shape):
            if keeps(name, params, first):
                return [first]
            view = shown(name, params, first)
        record.view = view is not None
        return self._finish(record, view and [view], whole=True)

    def _finish(self, record, geometries=None, whole=False):
        for value in record.inputs:
            if isinstance(value, Value):
                self._on_read(value, record)
        arrays = self._given
        if arrays is None:
            arrays = record.compute(*(v.array if isinstance(v, Value) else v for v in record.inputs))
        values = self._made(record, arrays, geometries)
        return values if whole else values[0]

    def _made(self, record, arrays, geometries=None):
        values = [v for v in record.inputs if isinstance(v, Value)]
        role = _abi.COMPUTED
        if all(v.role == _abi.CONSTANT for v in values):
            role = _abi.CONSTANT
        for i, array in enumerate(arrays):
            if geometries:
                base = values[0]
                offset, shape, stride = geometries[i]
                record.outputs.append(Value(array, base.role, base.storage, offset, shape, stride, record,
                                            base.base or base))
            else:
                record.outputs.append(value_of(array, role, record))
        self._on_made(record)
        return list(record.outputs)

    def _called_back(self, equation, record):
        """What the real computation's callback gave; it is not called again."""
        for value in record.inputs:
            if isinstance(value, Value):
                self._on_read(value, record)
        given = self._callbacks.get(id(equation.params.get("callback")), [])
        avals = [var.aval for var in equation.outvars]
        results = given.pop(0) if given else [np.zeros(a.shape, a.dtype) for a in avals]
        arrays = [jax.numpy.asarray(r, a.dtype) for r, a in zip(results, avals, strict=True)]
        values = self._made(record, arrays)
        for value in values:  # from outside, as far as we can tell
            value.role = _abi.INPUT
        return values


def bind(equation, *arrays):
    """Runs one equation."""
    with equation.ctx.manager:
        found = equation.primitive.get_bind_params(equation.params)
        subfunctions, params = found if isinstance(found, tuple) else ((), found)
        result = equation.primitive.bind(*subfunctions, *arrays, **params)
    return list(result) if equation.primitive.multiple_results else [result]


def can_enter(equation):
    if equation.primitive.name != "shard_map":
        return True
    return equation.params["mesh"].size == 1 and not any(
        "axes" in e.params and "psum" in e.primitive.name or e.primitive.name in (
            "axis_index", "all_gather", "ppermute", "all_to_all", "reduce_scatter", "psum_invariant")
        for e in _all_equations(closed(equation.params["jaxpr"])))


def inner(equation):
    """The jaxprs in an equation's parameters."""
    for value in equation.params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, core.ClosedJaxpr | core.Jaxpr):
                yield closed(item)


def _all_equations(closed):
    for equation in closed.jaxpr.eqns:
        yield equation
        for jaxpr in inner(equation):
            yield from _all_equations(jaxpr)


def scan_counts(equation):
    """How many of a scan's operands are constants, and how many are carried."""
    p = equation.params
    if "num_consts" in p:
        return p["num_consts"], p["num_carry"]
    consts, carry, _ = p["ft_in"].update(equation.invars).unpack()  # since JAX 0.11
    return len(list(consts)), len(list(carry))


def is_one(closed):
    """Whether a jaxpr is one equation, whose results are its own."""
    jaxpr = closed.jaxpr
    return (len(jaxpr.eqns) == 1 and list(jaxpr.outvars) == list(jaxpr.eqns[0].outvars)
            and jaxpr.eqns[0].primitive.name not in (*CALLS, "scan", "while", "cond"))


def size(closed):
    return sum(1 for _ in _all_equations(closed))


def closed(jaxpr):
    return jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else core.ClosedJaxpr(jaxpr, ())
