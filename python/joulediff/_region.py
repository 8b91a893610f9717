"""Finding the steps of a program without editing it.

JOULEDIFF_REGION names a function or method as `module:qualname`; without it the region is the
outermost torch.nn.Module that is called a second time, or in a program of JAX the outermost jitted function, or the
session of ONNX Runtime that is run a second time. A step lasts from one start of the region to the next. Importing
joulediff.torch, .jax or .onnx switches the implicit region off, since such a program says itself where its steps are;
steps() also ends a region that was named. Nothing here imports a framework by itself.

Each process records on its own, if it makes steps. A forked child starts afresh, whatever its parent
was doing; what its parent had armed is armed in it, too.
"""

import atexit
import contextlib
import functools
import importlib
import inspect
import os
import sys
import threading

from joulediff import _abi, _inputs
from joulediff._imports import after_import


_MODULES = {"torch": "torch", "jax": "jax", "onnx": "onnxruntime"}


class State:
    """What this process knows of its recording."""

    def __init__(self):
        self.searches = []  # for the implicit region, one for each framework
        self.explicit = False  # the program imports joulediff.torch, .jax or .onnx
        self.work = _work_of_environment()
        self.recorder = None
        self.forget()

    def forget(self):
        """As before the first step."""
        self.recording = None
        self.framework = None  # the name of the one whose program is recorded
        self.taken = False  # steps() has the recording
        self.began = False
        self.thread = None  # the one whose calls of the region are its steps


def _work_of_environment():
    unit, _, count = os.environ.get("JOULEDIFF_WORK", "").partition(":")
    try:
        return (unit, float(count or 1)) if unit else None
    except ValueError:
        return None


state = State()


def _load(_module=None):
    """The recorder. Until a step begins it records as if nobody attended to it, for none may come."""
    if state.recorder is None:
        state.recorder = _abi.load()


def tell(topic, fields):
    """A fact for the recorder, where there is one."""
    try:
        _load()
        if state.recorder is not None:
            state.recorder.fact(topic, **fields)
    except Exception as error:  # noqa: BLE001  the program goes on without us
        if state.recorder is not None:
            state.recorder.failed(error)


def _watch_graphs(_module):
    if state.recorder is not None:
        from joulediff import _graphs

        _graphs.watch()


def _module_of(framework):
    """What the recording needs of the framework; where none was named, of the first that is there, but of ONNX
    Runtime if there is a session of it.
    """
    if framework is None:
        sessions = sys.modules.get("joulediff._onnx_region")
        there = [name for name, module in _MODULES.items() if module in sys.modules]
        framework = "onnx" if sessions is not None and sessions.made else (*there, "torch")[0]
    state.framework = framework
    return importlib.import_module(f"joulediff._of_{framework}")


def _start(framework=None):
    """The Recording of this process, or None where nothing is to be recorded."""
    if not state.began:
        state.began = True
        try:
            _load()
            if state.recorder is not None:
                from joulediff._recording import Recording

                state.recorder.kernels(_abi.WARMUP)  # the passes are made from here on

                state.recording = Recording(state.recorder, state.work, _module_of(framework))
        except Exception as error:  # noqa: BLE001  the program goes on without us
            if state.recorder is not None:
                state.recorder.failed(error)
    return state.recording


def steps(n, framework):
    """The loop of joulediff.torch, .jax and .onnx: 0, 1, ..., as often as the recorder needs."""
    recording = take_over(framework)
    done = 0
    if recording is not None:
        try:
            while recording.active:
                recording.step()
                if not recording.active and done >= n:
                    break
                yield done
                done += 1
        finally:
            recording.finish(whole=True)
    while done < n:
        yield done
        done += 1


def take_over(framework=None):
    """The recording for an explicit loop, once; a region that has begun is ended."""
    if state.taken:
        return None
    state.taken = True
    region_began = state.began
    recording = _start(framework)
    if recording is not None and region_began:
        state.recorder.diagnostic("warning", "region_and_steps",
                                  "the program's own steps() came after the region had begun")
        recording.finish(whole=False)
        return None
    return recording


def enter(args=(), kwargs=None, framework=None):
    """A start of the region, which is called with these arguments."""
    here = threading.get_ident()
    if state.recording is None or state.recording.warming:
        state.thread = here  # a model tried out in one thread may serve in another
    if state.taken or state.thread != here or _no_step():  # the modes belong to one thread
        return
    recording = _start(framework)
    if recording is not None and recording.active:
        recording.step(_inputs.text_of(args, kwargs or {}))


def _no_step():
    """A call that only captures a graph; or of a transform, where a DataLoader's worker makes a batch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    worker = sys.modules.get("torch.utils.data._utils.worker")
    if worker is not None and worker._worker_info is not None:
        return True
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _at_exit():
    if state.recording is not None and not state.taken:
        state.recording.finish(whole=False, leaving=True)


def _finish_before_exit():
    """os._exit runs no handlers, and is how multiprocessing ends a forked worker.

    A program that leaves like that may do so because the device hangs: nothing here waits for it.
    """
    leave = os._exit

    @functools.wraps(leave)
    def _exit(status):
        with contextlib.suppress(Exception):
            if state.recording is not None:
                state.recording.finish(whole=False, wait=False, leaving=True)
            if state.recorder is not None:
                state.recorder.flush()
        leave(status)

    os._exit = _exit


def _after_fork_in_child():
    if state.recording is not None:
        state.recording.abandon()
    state.forget()
    for search in state.searches:
        search.forget()


os.register_at_fork(after_in_child=_after_fork_in_child)


def install():
    """Called by the injected sitecustomize: arms the region, once torch and its module are there."""
    atexit.register(_at_exit)
    _finish_before_exit()
    after_import("torch", _load)
    after_import("torch", _watch_graphs)
    after_import("jax", _load)
    after_import("onnxruntime", _load)
    region = os.environ.get("JOULEDIFF_REGION", "")
    after_import("onnxruntime", lambda runtime: _watch_sessions(runtime, not region))
    if not region:
        after_import("torch", _search)
        after_import("jax", _watch_jit)
        return
    module, _, name = region.partition(":")
    after_import("jax", lambda jax: _watch_jit(jax, module, name))
    if module == "__main__":
        _watch_main(name)
    else:
        after_import(module, lambda loaded: _wrap(loaded, name))


def _search(torch):
    state.searches.append(_OutermostModule(torch))
    state.searches[-1].arm()


def _watch_jit(jax, module=None, name=None):
    from joulediff import _jax_region

    state.searches.append(_jax_region.Jitted(jax, module, name))


def _watch_sessions(onnxruntime, search):
    from joulediff import _onnx_region

    state.searches.append(_onnx_region.Sessions(onnxruntime, search))


def _wrap(owner, path):
    """Replaces the function at a dotted path below `owner` by one that enters the region."""
    *parents, name = path.split(".")
    try:
        for parent in parents:
            owner = getattr(owner, parent)
        function = vars(owner)[name] if name in vars(owner) else getattr(owner, name)
    except AttributeError:
        return
    if hasattr(function, "lower") and hasattr(function, "trace"):  # jitted by JAX
        from joulediff import _jax_region

        setattr(owner, name, _jax_region.region(function))
        return
    inner = function.__func__ if isinstance(function, staticmethod | classmethod) else function
    own = int(inspect.isclass(owner) and not isinstance(function, staticmethod))  # self is no input

    @functools.wraps(inner)
    def region(*args, **kwargs):
        enter(args[own:], kwargs)
        return inner(*args, **kwargs)

    setattr(owner, name, type(function)(region) if inner is not function else region)


def _watch_main(name):
    """Wraps a function of the script when it is first called: before that it does not exist.

    The profile hook is gone as soon as the function was seen; that call is the warm-up.
    """
    leaf = name.split(".")[-1]

    def look(frame, event, _):
        if (event == "call" and frame.f_code.co_name == leaf
                and frame.f_globals.get("__name__") in ("__main__", "__mp_main__")
                and getattr(frame.f_code, "co_qualname", name) == name):
            sys.setprofile(None)
            main = sys.modules[frame.f_globals["__name__"]]
            _wrap(main, name)
            enter()

    sys.setprofile(look)


class _OutermostModule:
    """Finds the first module instance to be called outermost twice, then watches its class alone."""

    def __init__(self, torch):
        self._class = torch.nn.Module
        self._seen = set()
        self._over = False
        self._depth = threading.local()

    def arm(self):
        torch = sys.modules["torch"]
        original = self._original = self._class.__call__

        def __call__(module, *args, **kwargs):  # noqa: N807
            # A compiled module keeps what it was made from, us too: also when the search is over.
            if self._over or torch.compiler.is_compiling():
                return original(module, *args, **kwargs)
            depth = getattr(self._depth, "value", 0)
            if depth == 0 and self._outermost(module, args, kwargs):
                return module(*args, **kwargs)  # now through its class
            self._depth.value = depth + 1
            try:
                return original(module, *args, **kwargs)
            finally:
                self._depth.value = depth

        self._patched = self._class.__call__ = __call__

    def forget(self):
        """As before the first call."""
        self._seen.clear()
        self._depth = threading.local()

    def _outermost(self, module, args, kwargs):
        """True when the region is found, and its class is watched."""
        if state.explicit or state.taken or state.framework not in (None, "torch"):
            self._disarm()
            return False
        if _no_step():
            return False
        if id(module) not in self._seen:
            if not self._seen:
                enter(args, kwargs)  # the warm-up
            self._seen.add(id(module))
            return False
        self._disarm()
        _watch_class(type(module), module)
        return True

    def _disarm(self):
        self._over = True
        if self._class.__call__ is self._patched:
            self._class.__call__ = self._original


def _watch_class(kind, root):
    torch = sys.modules["torch"]
    own = vars(kind).get("__call__")

    def __call__(module, *args, **kwargs):  # noqa: N807
        # A compiler that traces us must find the program and nothing else: no step begins there.
        if module is root and not torch.compiler.is_compiling():
            enter(args, kwargs)
            over = state.recording is None or not state.recording.active
            if state.taken or (state.began and over):
                _restore(kind, own, __call__)
        if own is not None:
            return own(module, *args, **kwargs)
        return super(kind, module).__call__(*args, **kwargs)

    kind.__call__ = __call__


def _restore(kind, own, ours):
    if vars(kind).get("__call__") is ours:
        if own is None:
            del kind.__call__
        else:
            kind.__call__ = own
