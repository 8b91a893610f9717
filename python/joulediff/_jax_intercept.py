"""Every computation that JAX runs, as its jaxpr and arguments.

A jitted function that has run before is called without Python. While a pass watches, that shortcut is
closed: the caches of it are emptied and not filled again, so that each call, an eager operation too, comes
through the function that runs a compiled jaxpr. What was traced and compiled stays as it was; nothing is
compiled anew. Afterwards the caches are emptied once more, and fill as ever.
"""

import contextlib
import threading

import jax
from jax._src import callback, pjit
from jax._src.interpreters import mlir
from jax._src.lib import _jax

_NEEDED = ((pjit, "_get_fastpath_data"), (pjit, "_pjit_call_impl_python"), (pjit, "_resolve_and_lower"),
           (pjit, "convert_to_metaty"), (callback, "_FlatCallback"), (mlir, "LoweringParameters"),
           (_jax, "PjitFunctionCache"))


class Unknown(Exception):
    """This version of JAX is not one that we can watch."""


def check():
    """Raises Unknown where JAX has other insides than those we know."""
    missing = [f"{module.__name__}.{name}" for module, name in _NEEDED if not hasattr(module, name)]
    if missing:
        raise Unknown(f"JAX {jax.__version__} has no {', '.join(missing)}: its values cannot be recorded")


def _empty_shortcuts():
    for name in ("_cpp_pjit_cache_fun_only", "_cpp_pjit_cache_explicit_attributes"):
        if hasattr(pjit, name):
            getattr(pjit, name).clear()
    _jax.PjitFunctionCache.clear_all()


class Interception:
    """around(args, params, run) is called for each computation of this thread; run() is the program's own
    and has to be called once. `results`: what callbacks returned meanwhile, by the id of the callback.
    """

    def __init__(self, around):
        self._around, self._thread = around, threading.get_ident()
        self._inside = False
        self._undo = contextlib.ExitStack()
        self.results = {}

    def begin(self):
        check()
        original, call = pjit._pjit_call_impl_python, callback._FlatCallback.__call__

        def run(*args, **params):
            if self._inside or threading.get_ident() != self._thread:
                return original(*args, **params)
            self._inside = True
            try:
                return self._around(args, params, lambda: original(*args, **params))
            finally:
                self._inside = False

        def called(flat, *args):
            result = call(flat, *args)
            self.results.setdefault(id(flat), []).append(list(result))
            return result

        self._patch(pjit, "_pjit_call_impl_python", run)
        self._patch(pjit, "_get_fastpath_data", lambda *_, **__: None)
        self._patch(callback._FlatCallback, "__call__", called)
        _empty_shortcuts()
        self._undo.callback(_empty_shortcuts)

    def _patch(self, owner, name, new):
        self._undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, new)

    def end(self):
        self._undo.close()


@contextlib.contextmanager
def plainly():
    """Ours is evaluated without the checks and modes that the program may have asked for."""
    with contextlib.ExitStack() as stack:
        for name, value in (("debug_nans", False), ("debug_infs", False), ("disable_jit", False),
                            ("transfer_guard", "allow"), ("log_compiles", False)):
            if (manager := getattr(jax, name, None)) is not None:
                stack.enter_context(manager(value))
        yield


def text_of(compiled):
    """The optimised HLO of what ran; None where it is not one module that can be read."""
    try:
        [module] = compiled.runtime_executable().hlo_modules()
        return module.to_string()
    except Exception:  # noqa: BLE001  a backend that hands out none
        return None


def compile_again(args, params, closed):
    """The optimised HLO of a jaxpr under the arguments and options of a computation that ran."""
    computation = pjit._resolve_and_lower(
        [pjit.convert_to_metaty(a) for a in args], **{**params, "jaxpr": closed}, lowering_platforms=None,
        lowering_parameters=mlir.LoweringParameters(), pgle_profiler=None)
    return text_of(computation.compile())
