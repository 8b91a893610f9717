"""The passes over a program of ONNX Runtime: values, order and replay.

In each of them the program's own session runs as always, with the results that it always has. Before, its twin runs on
the same inputs (which a run may write over): for the values, or for the inputs of its nodes, each of which is then run
by itself.
"""

import math
import time
import weakref

import onnxruntime

from joulediff import _onnx_operators, _onnx_region, _onnx_twin
from joulediff._measure import Idle, Measurements, choose
from joulediff._memory import Observer
from joulediff._stacks import Stacks, call_path

_TIMED_SECONDS = 5e-3
_twins = weakref.WeakKeyDictionary()  # session -> Twin, or None: it cannot be looked into
_names = {}  # of the values pass's operators, by index
_PACKAGE = onnxruntime.__file__.rpartition("__init__")[0]


def forget():
    """After a recording: nothing of the program's is kept, in memory or on disk."""
    _twins.clear()
    _names.clear()


class Pass:
    """Subclasses say in `watch` what is done with the operators of a run. `count`: operators so far."""

    def __init__(self, recorder, fail):
        self.recorder, self.fail = recorder, fail
        self.off, self.count = False, 0
        self.values = None
        self._told = set()

    def begin(self):
        self.off, self.count = False, 0
        self.values = _onnx_operators.Values()
        _onnx_region.watch(self._around)

    def end(self):
        self.leave()

    def leave(self):
        self.off, self.values = True, None
        _onnx_region.watch(None)

    def close(self):
        """After its last step."""
        for twin in _twins.values():
            if twin is not None:
                twin.close()

    def watch(self, operators, twin):
        """twin: None for a run that is one opaque operator."""
        raise NotImplementedError

    def real(self, run, twin):
        """The program's own run."""
        del twin
        return run()

    def guarded(self, function, *args):
        """function(*args); a mistake of ours ends the recording, never the program."""
        if self.off:
            return None
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001
            self.off = True
            self.fail(error)
            forget()
            return None

    def tell(self, severity, rule, message):
        """Once."""
        if message not in self._told:
            self._told.add(message)
            self.recorder.diagnostic(severity, rule, message)

    def _around(self, session, call, run):
        twin, given, env = self.guarded(self._before, session, call) or (None, None, None)
        result = self.real(run, twin)
        if given is not None:
            self.guarded(self._after, session, call, twin, given, env, result)
        return result

    def _before(self, session, call):
        """(Twin or None, {name: Tensor} that the session is given, {name: Value} of what it gives)."""
        given = {name: tensor for name, (method, args) in call.inputs().items()
                 if (tensor := _onnx_twin.of_given(method, args)) is not None}
        twin = self._twin(session)
        try:
            made = twin.run(given) if twin is not None else None
        except Exception as error:  # noqa: BLE001  the runtime's, of inputs that the program's session may refuse, too
            self._refuse(error)
            return None, given, None
        if twin is None:
            return None, given, None
        operators, env = self.values.operators(twin, given, made, self.count)
        self.count += len(operators)
        self.watch(operators, twin)
        return twin, given, {name: env[name] for name in twin.model.outputs if name in env}

    def _twin(self, session):
        if session not in _twins:
            _twins[session] = None
            try:
                _twins[session] = _onnx_twin.Twin(session)
            except Exception as error:  # noqa: BLE001  the runtime's, or a model that we cannot read
                self._refuse(error)
        return _twins[session]

    def _refuse(self, error):
        self.tell("warning", "unreadable_session", "a session's nodes cannot be seen, and a run of it is one operator: "
                  f"{type(error).__name__}: {error}")

    def _after(self, session, call, twin, given, env, result):
        results = _results(session, call, result)
        if twin is None:
            named = {name: self.values.given(tensor) for name, tensor in given.items()}
            operator = _onnx_operators.opaque(self.count, named, list(results.values()))
            self.count += 1
            self.watch([operator], None)
            for value in operator.outputs:
                self.values.keep(value, value.tensor)
            return
        differ = []
        for name, tensor in results.items():
            if tensor is None or name not in env:
                continue
            if not env[name].blocked and tensor.key() != env[name].tensor.key():
                differ.append(name)
            self.values.keep(env[name], tensor)
        if differ:
            self.tell("note", "twin_differs", "run a second time on the same inputs, the session's graph gives other "
                      f"bits for {', '.join(differ[:8])}: it draws random numbers, or adds up in another order")


def _results(session, call, result):
    """{name: Tensor or None} of what the program got; {} where that is not known yet."""
    if call.method == "run":
        names = call.names or [output.name for output in session.get_outputs()]
        return dict(zip(names, map(_result, result), strict=True))
    if call.method == "run_with_ort_values":
        names = call.names or [output.name for output in session.get_outputs()]
        return dict(zip(names, map(_onnx_twin.of_value, result), strict=True))
    if call.method == "run_with_iobinding":
        names, outputs = list(_onnx_region.results.get(call.binding, ())), call.binding.get_outputs()
        if len(names) == len(outputs):
            return dict(zip(names, map(_onnx_twin.of_value, outputs), strict=True))
    return {}


def _result(array):
    """What run() returns: an array, or something else for what is no tensor."""
    return _onnx_twin.of_array(array) if hasattr(array, "dtype") else _onnx_twin.Tensor(None, (), 0, None)


class Values(Pass):
    """Operators are reported run by run."""

    def __init__(self, recorder, fail):
        super().__init__(recorder, fail)
        self._observe = Observer(recorder, _onnx_twin.host)
        self._stacks = Stacks(recorder)
        self._operations = {}

    def watch(self, operators, twin):
        stack = self._stacks.id_of(call_path((_PACKAGE,)))
        for operator in operators:
            facts = _onnx_operators.facts_of(operator, stack, twin.scopes if twin is not None else {})
            self._operations[operator.index] = Operation(operator.name, facts)
            inputs = list(dict.fromkeys(operator.inputs))
            for value in (*inputs, *operator.outputs):
                self._observe(value)
            self.recorder.operator(operator.index, operator.name, [v.id for v in inputs],
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


class Order(Pass):
    """On the host each operator is run by itself, and says how long it took. On a device there is a bracket around the
    whole run, as its first operator.
    """

    def __init__(self, recorder, fail):
        super().__init__(recorder, fail)
        self.step, self.operators = 0, {}
        self._first = None  # index of this run's first operator

    def begin_step(self, step, alike):
        """alike: the step's inputs have the shapes that the values pass saw."""
        del alike
        self.step, self.operators = step, {}
        self.begin()

    def real(self, run, twin):
        if twin is not None and twin.on_host:
            return run()
        index = self.count if self._first is None else self._first
        self.recorder.operator_begin(self.step, index, _names.get(index, "onnxruntime").encode())
        self._first = None
        try:
            return run()
        finally:
            self.recorder.operator_end()

    def watch(self, operators, twin):
        self._first = operators[0].index if operators and twin is not None else None
        for operator in operators:
            signature, alone = operator.signature(), None
            moves = twin is not None and twin.on_host and not operator.view
            if moves:
                try:
                    alone = twin.piece(operator, signature)
                except Exception as error:  # noqa: BLE001  the runtime's
                    moves = False
                    self.tell("note", "not_replayed", f"{operator.name} cannot be run by itself: {error}")
            self.operators[operator.index] = operator.name, signature, moves
            if twin is None or not twin.on_host:
                continue
            begin, took = self.recorder.now(), 0
            if alone is not None:
                alone.run()
                took = (self.recorder.now() - begin) // alone.copies
            self.recorder.operator_took(self.step, operator.index, operator.name.encode(), begin, begin + took)


class Executions:
    """Runs an operator back to back, `n` times or a little more often."""

    def __init__(self, piece):
        self._piece = piece
        self.seconds = self._time()

    def _time(self):
        n, seconds = 1, 0.0
        while seconds < _TIMED_SECONDS:
            n *= 4
            begin = time.monotonic()
            done = self.run(n)
            seconds = time.monotonic() - begin
        return seconds / done

    def run(self, n):
        runs = max(1, math.ceil(n / self._piece.copies))
        for _ in range(runs):
            self._piece.run()
        return runs * self._piece.copies


class Replay(Pass):
    """One step in which the wanted operators are measured, each as a session of its own, on the values that it has in
    the program.
    """

    def __init__(self, recorder, fail, path, operators, trace=None):
        super().__init__(recorder, fail)
        self._operators, self._trace = operators, trace
        self._measurements = Measurements(recorder, path, lambda: None)

    def begin(self):
        wanted = choose(self._operators, self.recorder.operator_seconds)
        self._measurements.begin(wanted, [("joulediff.idle", Idle())], trace=self._trace)
        super().begin()

    def leave(self):
        super().leave()
        self._measurements.release()

    def end(self):
        super().end()
        self._measurements.end()

    def watch(self, operators, twin):
        for operator in operators:
            signature = operator.signature()
            if twin is None or signature not in self._measurements.wanted:
                continue
            del self._measurements.wanted[signature]
            try:
                self._measurements.guarded(self._measure, twin, operator, signature)
            except Exception as error:  # noqa: BLE001  the runtime's: no room, or it refuses the node
                self._measurements.not_replayed(signature, str(error))

    def _measure(self, twin, operator, signature):
        piece = twin.piece(operator, signature)
        try:
            self._measurements.measure(signature, Executions(piece))
        finally:
            twin.close_piece(signature)


__all__ = ["Order", "Replay", "Values", "forget"]
