"""The region of a program of ONNX Runtime: the session that is run a second time; and the way to its runs.

The methods by which sessions run are replaced in their class, from the import of ONNX Runtime on, so that it does not
matter when the program has made its sessions or under which name it has their class. What a binding is given is
noted, since it cannot be asked for it.
"""

import functools
import threading
import weakref

from joulediff import _region

_INPUTS = 8  # of a session with more only the first of each shape is told
_RUNS = ("run", "run_with_ort_values", "run_with_iobinding", "run_async", "run_with_ortvaluevector")
_BINDS = {"bind_cpu_input": ("name", "arr_on_cpu"), "bind_ortvalue_input": ("name", "ortvalue"),
          "bind_input": ("name", "device_type", "device_id", "element_type", "shape", "buffer_ptr")}
_RESULTS = ("bind_output", "bind_ortvalue_output")

_NEEDED = {"InferenceSession": (*_RUNS[:3], "get_inputs", "get_outputs", "get_session_options", "get_providers",
                                "get_provider_options", "io_binding"),
           "IOBinding": (*_BINDS, *_RESULTS, "clear_binding_inputs", "clear_binding_outputs", "get_outputs"),
           "OrtValue": ("has_value", "is_tensor", "element_type", "data_type", "shape", "data_ptr", "device_name"),
           "SessionOptions": ("optimized_model_filepath", "graph_optimization_level", "execution_mode",
                              "add_session_config_entry", "get_session_config_entry")}

made = weakref.WeakKeyDictionary()  # the program's sessions -> what they were made with beside the model
bound = weakref.WeakKeyDictionary()  # a binding -> {name of an input: (method, arguments after the name)}
results = weakref.WeakKeyDictionary()  # a binding -> {name of an output: None}, in the order of binding
_here = threading.local()
_watching = [None]  # the pass's around(session, call, run), which runs the program's call once


class Unknown(Exception):
    """This version of ONNX Runtime has other insides than those we know."""


class ours:  # noqa: N801
    """A context in which sessions are our own."""

    def __enter__(self):
        _here.ours = getattr(_here, "ours", 0) + 1

    def __exit__(self, *_):
        _here.ours -= 1


class Call:
    """One run of a session, as the program makes it. inputs(): {name: how a binding is given it}."""

    def __init__(self, method, args, kwargs):
        self.method = method
        if method == "run_with_iobinding":
            self.binding = args[0] if args else kwargs["iobinding"]
            self.names = None
        elif method == "run_with_ortvaluevector":
            names = ("run_options", "feed_names", "feeds", "fetch_names", "fetches", "fetch_devices")
            given = dict(zip(names, args, strict=False)) | kwargs
            self.names, self.feed = given["fetch_names"], dict(zip(given["feed_names"], given["feeds"], strict=True))
        else:
            self.names = args[0] if args else kwargs.get("output_names")
            feeds = ("input_dict_ort_values",) if method == "run_with_ort_values" else ("input_feed",)
            self.feed = args[1] if len(args) > 1 else kwargs[feeds[0]]

    def inputs(self):
        if self.method == "run_with_iobinding":
            return dict(bound.get(self.binding, {}))
        return {name: ("bind_ortvalue_input" if hasattr(value, "data_ptr") or hasattr(value, "data_type")
                       else "bind_cpu_input", (value,)) for name, value in self.feed.items()}


class _Seen:
    """An input as _inputs tells of it."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype


def _told(method, args):
    value = args[0]
    if method == "bind_input":  # device, its number, dtype, shape, address
        kind, shape = args[2], args[3]
        return _Seen(shape, getattr(kind, "__name__", str(kind)))
    if method == "bind_ortvalue_input":
        if not value.is_tensor():
            return None
        dtype = value.data_type().removeprefix("tensor(").rstrip(")")
        return _Seen(value.shape(), {"float": "float32", "double": "float64"}.get(dtype, dtype))
    return value if hasattr(value, "shape") else None


def inputs_of(call):
    """{name: what has a shape and a dtype} of a call, for the text of a step's inputs."""
    found = {name: _told(method, args) for name, (method, args) in call.inputs().items()}
    if len(found) <= _INPUTS:
        return found
    first = {}
    for name, value in found.items():
        if value is not None:
            first.setdefault((tuple(value.shape), str(value.dtype)), name)
    return {name: found[name] for name in first.values()}


class Sessions:
    """Watches what sessions run; and searches the region, if that is asked for."""

    def __init__(self, onnxruntime, search):
        missing = [f"{owner}.{name}" for owner, names in _NEEDED.items() for name in names
                   if not hasattr(getattr(onnxruntime, owner, None), name)]
        if missing:
            raise Unknown(f"ONNX Runtime {getattr(onnxruntime, '__version__', '')} has no {', '.join(missing)}: it "
                          "cannot be recorded")
        self._search = search
        self._region, self._seen = None, weakref.WeakSet()
        kind = onnxruntime.InferenceSession
        for owner in kind.__mro__:
            for name in _RUNS:
                if name in vars(owner):
                    setattr(owner, name, self._run(name, vars(owner)[name]))
        kind.__init__ = _init(kind.__init__)
        for name in _BINDS:
            setattr(onnxruntime.IOBinding, name, _bind(name, getattr(onnxruntime.IOBinding, name)))
        for name in _RESULTS:
            setattr(onnxruntime.IOBinding, name, _bind_result(getattr(onnxruntime.IOBinding, name)))
        for name, noted in (("clear_binding_inputs", bound), ("clear_binding_outputs", results)):
            setattr(onnxruntime.IOBinding, name, _clear(getattr(onnxruntime.IOBinding, name), noted))

    def _run(self, name, original):
        @functools.wraps(original)
        def run(session, *args, **kwargs):
            if getattr(_here, "ours", 0):
                return original(session, *args, **kwargs)
            return self._called(session, name, args, kwargs, lambda: original(session, *args, **kwargs))

        return run

    def forget(self):
        """As before the first call."""
        self._seen.clear()
        self._region = None
        _watching[0] = None

    def _called(self, session, name, args, kwargs, run):
        made.setdefault(session, {})
        recording = _region.state.recording
        if recording is not None and not recording.active:
            return run()
        call = None
        try:
            call = Call(name, args, kwargs)
        except (KeyError, TypeError, ValueError):  # the session will say what is wrong with them
            return run()
        if self._search:
            self._find(session, call)
        around, thread = _watching[0] or (None, None)
        if around is None or thread != threading.get_ident():
            return run()
        return around(session, call, run)

    def _find(self, session, call):
        state = _region.state
        if state.explicit or state.taken or state.framework not in (None, "onnx"):
            return
        if self._region is not None:
            if session is self._region():
                self._enter(call)
        elif session in self._seen:
            self._region = weakref.ref(session)
            self._seen.clear()
            self._enter(call)
        else:
            if not self._seen:
                _region.enter(framework="onnx")  # the warm-up, of a session that need not be the region
            self._seen.add(session)

    @staticmethod
    def _enter(call):
        try:
            inputs = inputs_of(call)
        except Exception:  # noqa: BLE001  somebody else's objects
            inputs = {}
        _region.enter((), inputs, framework="onnx")


def watch(around):
    """around(session, call, run) for each run of this thread, until it is called with None."""
    _watching[0] = None if around is None else (around, threading.get_ident())


def _init(original):
    @functools.wraps(original)
    def init(session, *args, **kwargs):
        original(session, *args, **kwargs)
        if not getattr(_here, "ours", 0):
            made[session] = {key: kwargs[key] for key in ("disabled_optimizers",) if key in kwargs}

    return init


def _bind(method, original):
    names = _BINDS[method]

    @functools.wraps(original)
    def bind(binding, *args, **kwargs):
        result = original(binding, *args, **kwargs)
        if not getattr(_here, "ours", 0):
            given = dict(zip(names, args, strict=False)) | kwargs
            name, *rest = (given[n] for n in names)
            bound.setdefault(binding, {})[name] = method, tuple(rest)
        return result

    return bind


def _bind_result(original):
    @functools.wraps(original)
    def bind(binding, *args, **kwargs):
        result = original(binding, *args, **kwargs)
        if not getattr(_here, "ours", 0):
            results.setdefault(binding, {})[args[0] if args else kwargs["name"]] = None
        return result

    return bind


def _clear(original, noted):
    @functools.wraps(original)
    def clear(binding):
        noted.pop(binding, None)
        return original(binding)

    return clear
