"""The recording of one process: which step makes which pass.

Passes change only between steps, so that none disturbs another. During the trace nothing of ours runs
inside a step: its only cost is one call between two steps. Any mistake of ours ends the recording with
a diagnostic and leaves the program as it is.
"""

import contextlib
import os
import time

from joulediff import _abi, _host, _launcher

_ALL = ("values", "order", "trace", "replay")
_ORDER_STEPS = 3  # at least
_ORDER_MOST = 24  # while new shapes keep coming
_ORDER_SECONDS = 20.0
_ORDER_PATIENCE = 8  # known steps in a row, where shapes differ: a server takes many prompts, then decodes
_SETTLE_STEPS = 2  # unrecorded, so that clocks and allocator settle before the trace


def _number(name, default):
    try:
        return max(0.0, float(os.environ.get(name, default)))
    except ValueError:
        return default


def schedule(passes, steps, seconds, inputs=lambda: None, clock=time.monotonic):
    """The pass of each step, in order; `seconds` of trace are counted from its first step.

    inputs(): the shapes of the step that is about to begin. The replay waits a while for the shapes
    that the order pass noted, if the trace has seen them come again.
    """
    seen = {inputs()} - {None}  # unknown is no shape: of the first call of a function it may be
    yield _abi.WARMUP
    noted, ordered, traced = None, [], set()
    if "values" in passes:
        noted = inputs()
        seen.add(noted)
        yield _abi.VALUES
    if "order" in passes:
        yield from _order(ordered, seen, inputs, clock)
        noted = noted if noted in ordered else ordered[0]
    if "trace" in passes:
        for _ in range(_SETTLE_STEPS):
            yield _abi.WARMUP
        begin, done = clock(), 0
        while done < max(1, steps) or clock() - begin < seconds:
            traced.add(inputs())
            yield _abi.TRACE
            done += 1
    if "replay" in passes and "order" in passes:
        for _ in range(_ORDER_MOST):
            if inputs() == noted or noted not in traced:
                break
            yield _abi.WARMUP
        yield _abi.REPLAY


def _order(ordered, seen, inputs, clock):
    """Steps of order until many in a row have brought no new shape; seen: the shapes before."""
    begin, known = clock(), 0
    while True:
        seen.add(inputs())
        patience = max(_ORDER_PATIENCE, len(seen)) if len(seen) > 1 else _ORDER_STEPS - 1
        over = len(ordered) >= _ORDER_MOST or clock() - begin >= _ORDER_SECONDS
        if len(ordered) >= _ORDER_STEPS and (over or (inputs() in ordered and known >= patience)):
            return
        known = known + 1 if inputs() in ordered else 0
        ordered.append(inputs())
        yield _abi.ORDER


class Recording:
    """step() at each start of a step; finish() after the last. `active` until the replay is over."""

    def __init__(self, recorder, work=None, framework=None):
        """framework: a module with what _of_torch has, which it is where none is given."""
        if framework is None:
            from joulediff import _of_torch as framework
        self._framework = framework
        asked = os.environ.get("JOULEDIFF_PASSES") or ",".join(_ALL)
        self._recorder, self._work = recorder, work
        self._passes = [p.strip() for p in asked.split(",")]
        self._schedule = schedule(self._passes, int(_number("JOULEDIFF_STEPS", 20)),
                                  _number("JOULEDIFF_TRACE_SECONDS", 0.0),
                                  lambda: self._following)
        self.active = True
        self.done = None  # the pass last finished
        self._pass, self._index, self._begin = None, -1, 0
        self._inputs = self._following = self._values_inputs = None  # shapes, as text
        self._mode, self._values = None, None
        self._operators = {}
        self._traced = None  # when the trace began and ended, and its steps
        self._settings = None
        self._profiled = False

    @property
    def warming(self):
        """Nothing but the first step has begun."""
        return self._index <= 0

    def step(self, inputs=None):
        """Ends the step before and begins the next; inputs: the text of its inputs' shapes."""
        self._survive(self._step, inputs)

    def finish(self, whole, wait=True, leaving=False):
        """Ends the last step; `whole`: the program has finished it; `wait`: for the device; `leaving`: the
        process is at its end, and need not be told that it may be ended.
        """
        self._survive(self._finish, whole, wait, leaving)

    def abandon(self):
        """In a forked child, which has our state but is not the recording."""
        self.active = False
        mode, self._mode = self._mode, None
        if mode is not None:
            with contextlib.suppress(Exception):
                mode.leave()

    def fail(self, error):
        """A mistake of ours, from inside a pass: off, and told once."""
        if self.active:
            self.active = False
            self._recorder.failed(error)
            _launcher.done()

    def _survive(self, function, *args):
        try:
            if self.active:
                function(*args)
        except Exception as error:  # noqa: BLE001
            self.fail(error)
        if not self.active and self._mode is not None:
            mode, self._mode = self._mode, None
            try:
                mode.end()
            except Exception as error:  # noqa: BLE001
                self._recorder.failed(error)

    def _step(self, inputs):
        self._following = inputs
        following = next(self._schedule, None)
        inside = following == self._pass == _abi.TRACE
        if not inside:
            self._framework.synchronize()
        now = self._recorder.now()
        self._end_step(now)
        if following != self._pass:
            self._leave_pass()
        if following is None:
            self._close()
            return
        if following != self._pass:
            self._enter_pass(following)
        self._index += 1
        self._inputs = inputs
        if following in (_abi.ORDER, _abi.TRACE) and not self._profiled:
            self._notice_profiler()
        if inside:
            self._begin = now
        else:
            self._begin_step()

    def _begin_step(self):
        mode = self._mode
        if self._pass == _abi.ORDER:
            mode.begin_step(self._index, self._inputs == self._values_inputs)
        elif mode is not None:
            mode.begin()
        self._framework.synchronize()
        self._begin = self._recorder.now()

    def _end_step(self, now):
        if self._pass is None:
            return
        if self._mode is not None:
            self._mode.end()
        self._recorder.step(self._pass, self._index, self._begin, now, self._inputs)
        if self._pass == _abi.TRACE:
            begin, _, steps = self._traced or (self._begin, now, 0)
            self._traced = begin, now, steps + 1

    def _notice_profiler(self):
        """Kineto and we cannot both have the device's records."""
        if profiler := self._framework.profiler():
            self._profiled = True
            self._recorder.diagnostic(
                "warning", "other_subscriber", f"{profiler} runs in step {self._index} and "
                "may take the device's records from us: kernels can be missing from there on; record "
                "without it")

    def _enter_pass(self, following):
        if self._index < 0:
            self._recorder.fact("process", **_host.process())
        if following == _abi.VALUES:
            self._values_inputs = self._following
        if following != _abi.WARMUP and self._settings is None:
            self._settings = self._framework.snapshot()
            self._tell_facts()
        make = {_abi.VALUES: lambda: self._framework.Values(self._recorder, self.fail),
                _abi.ORDER: lambda: self._framework.Order(self._recorder, self.fail),
                _abi.REPLAY: lambda: self._framework.Replay(
                    self._recorder, self.fail, os.environ.get("JOULEDIFF_SOCKET"), self._operators,
                    self._traced)}
        self._mode = make[following]() if following in make else None
        if following in (_abi.ORDER, _abi.TRACE):
            self._recorder.kernels(following)
        self._pass = following

    def _leave_pass(self):
        mode, self._mode = self._mode, None
        if self._pass in (_abi.ORDER, _abi.TRACE):
            self._recorder.kernels(_abi.WARMUP)
        if self._pass == _abi.VALUES:
            for key, value in mode.settings().items():
                self._recorder.fact("setting", key=key, value=value)
            self._values = {i: (o.name, o.facts["signature"])
                            for i, o in mode.operations().items()}
        if self._pass == _abi.ORDER:
            self._operators = mode.operators
            self._compare_orders()
        if mode is not None:
            mode.close()
        self.done, self._pass = self._pass, None

    def _compare_orders(self):
        """Operators are known by the signature that the values pass gave them."""
        values, order = self._values, self._operators
        if values is None:
            return
        same_names = values.keys() == order.keys()
        same_shapes = True
        for index, (name, signature, moves) in order.items():
            known_name, known = values.get(index, ("", ""))
            if name == known_name:
                same_shapes = same_shapes and signature == known
                order[index] = name, known, moves
            else:
                same_names = False
        if not same_names:
            self._recorder.diagnostic("warning", "order_differs", "the order pass saw other operators"
                                      f" than the values pass ({len(order)} against {len(values)})")
        elif not same_shapes:
            self._recorder.diagnostic("note", "shapes_differ",
                                      "the order pass saw other shapes than the values pass")

    def _tell_facts(self):
        for key, value in sorted(self._settings.items()):
            self._recorder.fact("setting", key=key, value=value)
        fields = self._framework.manifest() | self._framework.versions()
        if self._work:
            fields |= {"work_unit": self._work[0], "work_per_step": self._work[1]}
        self._recorder.fact("manifest", **fields)
        if twin := self._framework.twin():
            self._recorder.diagnostic("note", "eager_twin", twin)

    def _finish(self, whole, wait, leaving):
        if wait:
            self._framework.synchronize()
        if self._pass in (_abi.WARMUP, _abi.TRACE) and not whole:
            self._leave_pass()
        elif self._pass is not None:
            self._end_step(self._recorder.now())
            self._leave_pass()
        missing = dict.fromkeys(self._schedule_rest())
        if missing and self._index > 0:  # one call alone is no loop of steps
            ended = "program" if leaving else "program's loop"
            self._recorder.diagnostic(
                "warning", "ended_early", f"the {ended} ended after {self._index + 1} steps, before it had made "
                f"{', '.join(missing)}: let it run longer, or ask for fewer --steps or --trace-seconds")
        self._close(leaving)

    def _schedule_rest(self):
        """Names of the passes that are still to come; of the trace also when it was cut short."""
        names = {_abi.VALUES: "values", _abi.ORDER: "order", _abi.TRACE: "trace",
                 _abi.REPLAY: "replay"}
        for following in self._schedule:
            if following in names:
                yield names[following]
            if following == _abi.TRACE:  # the rest of the trace need not be counted
                if "replay" in self._passes and "order" in self._passes:
                    yield "replay"
                return

    def _close(self, leaving=False):
        if self._settings is not None:
            after = self._framework.snapshot()
            changed = sorted(k for k in after.keys() | self._settings.keys()
                             if after.get(k) != self._settings.get(k) and k not in self._framework.OF_CONTEXT)
            if changed:
                self._recorder.diagnostic(
                    "warning", "settings_changed", "the program changed settings while it was recorded, of "
                    f"which the first values are kept: {', '.join(changed)}")
        self._recorder.flush()
        self.active = False
        self._framework.forget()
        if not leaving:
            _launcher.done()
