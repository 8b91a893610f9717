"""The passes over a JAX program: values, order and replay.

In each of them the program runs as it is compiled, with the results that it always has. Afterwards the
twin of each computation is evaluated: for its values, or for the inputs of its operators, each of which is
then compiled by itself and run. Buffers that the program gives away are copied before.
"""

import time

import jax
import numpy as np

from joulediff import _jax_frames, _jax_intercept, _jax_plan, _jax_twin, _jax_values
from joulediff._jax_operators import Call
from joulediff._measure import Idle, Measurements, choose
from joulediff._memory import Observer
from joulediff._stacks import Stacks

_plans = {}  # id of a jaxpr -> (the jaxpr, Plan)
_pieces = {}  # signature -> compiled operator
_names = {}  # of the values pass's operators, by index
_TIMED_SECONDS = 5e-3


def forget():
    """After a recording: nothing of the program's is kept alive."""
    _plans.clear()
    _pieces.clear()
    _names.clear()


class Pass:
    """Subclasses say in `watch` what is done with a call's operators. `count`: operators so far."""

    keep = False  # the arrays of a call, until its operators were watched

    def __init__(self, recorder, fail):
        self.recorder, self.fail = recorder, fail
        self.off, self.count = False, 0
        self.arrays = None
        self.told = set()
        self._watching = None

    def begin(self):
        self.off, self.count = False, 0
        self.arrays = _jax_values.Arrays()
        self._watching = _jax_intercept.Interception(self._around)
        self._watching.begin()

    def end(self):
        self.leave()

    def close(self):
        """After its last step."""

    def leave(self):
        self.off = True
        if self._watching is not None:
            self._watching.end()
            self._watching = None

    def observe(self, value):
        """Called for each value that an operator reads or makes."""

    def watch(self, operators, call):
        raise NotImplementedError

    def real(self, run):
        """The program's own computation."""
        return run()

    def guarded(self, function, *args):
        """function(*args); a mistake of ours ends the recording, never the program."""
        if self.off:
            return None
        try:
            with _jax_intercept.plainly():
                return function(*args)
        except Exception as error:  # noqa: BLE001
            self.off = True
            self.fail(error)
            return None

    def _around(self, args, params, run):
        values = self.guarded(self._before, args, params)
        self._watching.results.clear()
        result = self.real(run)
        if values is not None:
            self.guarded(self._after, args, params, values, result)
        return result

    def _before(self, args, params):
        """The arguments as Values; None: not to be looked into."""
        jaxpr = params["jaxpr"].jaxpr
        if any(not hasattr(var.aval, "dtype") or "Ref" in type(var.aval).__name__ for var in jaxpr.invars):
            self._tell("unreadable_tensors", f"the computation {params['name']} changes arrays in place: its "
                       "operators are not recorded")
            return None
        names = jaxpr.debug_info.arg_names or ()
        values = []
        for i, (array, var, given) in enumerate(zip(args, jaxpr.invars, params["donated_invars"], strict=True)):
            if not isinstance(array, jax.Array):
                array = jax.numpy.asarray(np.asarray(array), var.aval.dtype)
            value = self.arrays.value_of(array, _jax_values.role_of(names[i] if i < len(names) else "", array))
            if given:
                value.array = value.storage.array = jax.numpy.copy(array)
            values.append(value)
        return values

    def _after(self, args, params, values, result):
        outs, compiled = result[:2]
        jax.block_until_ready(outs)
        jax.effects_barrier()  # callbacks
        plan = self._plan(args, params, compiled)
        call = Call(plan, self.observe)
        given = list(outs) if _jax_twin.is_one(plan.jaxpr) else None
        twin = _jax_twin.Twin(plan.numbers, dict(self._watching.results), call.on_read, call.on_made, self.keep,
                              given)
        made = twin.run(plan.jaxpr, values)
        operators = call.finish(made)
        for i, operator in enumerate(operators):
            operator.index = self.count + i
        self.count += len(operators)
        for name in dict.fromkeys(twin.opaque):
            self._tell("long_loop", f"a {name} makes too many operators: what it does from there on is one")
        self.watch(operators, _jax_frames.current())
        for array, value in (*zip(args, values, strict=True), *zip(outs, made, strict=True)):
            self.arrays.keep(array, value)

    def _plan(self, args, params, compiled):
        closed = params["jaxpr"]
        if id(closed) not in _plans:
            text = _jax_intercept.text_of(compiled) if _jax_twin.size(closed) > 1 else None
            plan = _jax_plan.plan(closed, text,
                                  lambda numbered: _jax_intercept.compile_again(args, params, numbered))
            if text is not None and plan.numbers is None:
                self._tell("unfused", f"the compiled form of {params['name']} cannot be compared with its "
                           "equations: each of them is an operator, and none has kernels")
            _plans[id(closed)] = closed, plan
        return _plans[id(closed)][1]

    def _tell(self, rule, message):
        if message not in self.told:
            self.told.add(message)
            self.recorder.diagnostic("note", rule, message)


class Values(Pass):
    """Operators are reported call by call."""

    def __init__(self, recorder, fail):
        super().__init__(recorder, fail)
        self._observe = Observer(recorder, _jax_values.host)
        self._stacks = Stacks(recorder)
        self._forwards, self._operations = {}, {}

    def observe(self, value):
        self._observe(value)

    def watch(self, operators, call):
        for operator in operators:
            facts = _jax_values.facts_of(operator, self._stacks, call, self._forwards)
            self._operations[operator.index] = Operation(operator.name, facts)
            self.recorder.operator(operator.index, operator.name, [v.id for v in operator.inputs],
                                   [v.id for v in operator.outputs], facts)

    def end(self):
        super().end()
        _names.clear()
        _names.update((i, o.name) for i, o in self._operations.items())
        self._observe.tell()

    def operations(self):
        """Every operator of the step, by index."""
        return self._operations

    def settings(self):
        return {}


class Operation:
    """What the recording compares with the order pass."""

    def __init__(self, name, facts):
        self.name, self.facts = name, facts


class Piece:
    """An operator compiled by itself: what XLA makes of these equations alone, in a loop so that the host's
    way into a computation is paid once. run(arrays, n) makes it n times and waits.
    """

    def __init__(self, compute, arrays):
        blank = [jax.numpy.zeros(s.shape, s.dtype) for s in jax.eval_shape(compute, *arrays)]

        def loop(n, *arrays):
            def body(i, _):
                _, *now = jax.lax.optimization_barrier((i, *arrays))  # not the same each time, for the compiler
                return compute(*now)

            return jax.lax.fori_loop(0, n, body, blank)

        self._loop = jax.jit(loop)
        self.run(arrays, 1)

    def run(self, arrays, n):
        jax.block_until_ready(self._loop(np.int32(n), *arrays))


def piece(operator, signature):
    """(its Piece, its arrays)."""
    arrays = [v.array for v in operator.inputs]
    if signature not in _pieces:
        _pieces[signature] = Piece(operator.function(), arrays)
    return _pieces[signature], arrays


def on_host():
    return jax.default_backend() == "cpu"


class Order(Pass):
    """On the host each operator is run once by itself, in its bracket. On a device the brackets are around
    the whole computation, whose kernels go by the names of what they compute.
    """

    keep = True

    def __init__(self, recorder, fail):
        super().__init__(recorder, fail)
        self.step, self.operators = 0, {}

    def begin_step(self, step, alike):
        """alike: the step's inputs have the shapes that the values pass saw."""
        del alike
        self.step, self.operators = step, {}
        self.begin()

    def real(self, run):
        if on_host():
            return run()
        self.recorder.operator_begin(self.step, self.count, _names.get(self.count, "jax.jit").encode())
        try:
            result = run()
            jax.block_until_ready(result[0])
            return result
        finally:
            self.recorder.operator_end()

    def watch(self, operators, call):
        first = operators[0].index if operators else 0
        for operator in operators:
            signature = operator.signature()
            moves = operator.replayable and not operator.view
            self.operators[operator.index] = operator.name, signature, moves
            alone = piece(operator, signature) if on_host() and moves else None
            if operator.index == first and not on_host():
                continue  # its bracket was around them all
            self.recorder.operator_begin(self.step, operator.index, operator.name.encode())
            try:
                if alone is not None:
                    alone[0].run(alone[1], 1)
            finally:
                self.recorder.operator_end()


class Executions:
    """Runs an operator `n` times back to back and waits."""

    def __init__(self, alone, arrays):
        self._alone, self._arrays = alone, arrays
        n, seconds = 1, 0.0
        while seconds < _TIMED_SECONDS:  # the way into the computation does not count
            n *= 4
            begin = time.monotonic()
            self.run(n)
            seconds = time.monotonic() - begin
        self.seconds = seconds / n

    def run(self, n):
        self._alone.run(self._arrays, n)
        return n


class Replay(Pass):
    """One step in which the wanted operators are measured, each compiled by itself, on the values that it
    has in the program. On a device they are not: alone, an operator may be other kernels than in the whole.
    """

    keep = True

    def __init__(self, recorder, fail, path, operators, trace=None):
        super().__init__(recorder, fail)
        self._operators, self._trace = operators, trace
        self._measurements = Measurements(recorder, path, lambda: None)

    def begin(self):
        if on_host():
            wanted = choose(self._operators, self.recorder.operator_seconds)
            self._measurements.begin(wanted, [("joulediff.idle", Idle())], trace=self._trace)
        else:
            self.recorder.diagnostic("note", "no_replay", "nothing is replayed: alone, an operator of a compiled "
                                     "computation may be other kernels on a device")
        super().begin()

    def leave(self):
        super().leave()
        self._measurements.release()

    def end(self):
        super().end()
        self._measurements.end()

    def watch(self, operators, call):
        wanted = self._measurements.wanted
        for operator in operators:
            signature = operator.signature()
            if signature in wanted and operator.replayable:
                del wanted[signature]
                try:
                    self._measurements.guarded(self._measure, operator, signature)
                except (RuntimeError, TypeError, ValueError) as error:  # no room, or no loop can be made of it
                    self._measurements.not_replayed(signature, str(error))
                wanted = self._measurements.wanted

    def _measure(self, operator, signature):
        self._measurements.measure(signature, Executions(*piece(operator, signature)))


__all__ = ["Order", "Replay", "Values", "forget"]
