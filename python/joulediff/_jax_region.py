"""The region of a JAX program: the outermost jitted function that is called a second time, or a named one.

What jax.jit returns is called through an object of ours that hands everything else on: the functions
jitted before ours was there are those that JAX itself is made of, and what a module was given a name of
before. A call of them is seen by every pass, but begins no step.
"""

import functools
import sys
import threading

from joulediff import _region

_LEAVES = 8  # arguments of more arrays are told by their number


class Watched:
    """A jitted function that tells of its calls. Everything but the call is the function's own."""

    def __init__(self, function, called):
        told = {name: getattr(function, name) for name in functools.WRAPPER_ASSIGNMENTS if hasattr(function, name)}
        vars(self).update(told, _function=function, _called=called)

    def __call__(self, *args, **kwargs):
        return self._called(self, self._function, args, kwargs)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return functools.partial(self, instance) if not hasattr(self._function, "__get__") else _Bound(
            self, instance, self._function.__get__(instance, owner))

    def __getattr__(self, name):
        return getattr(self._function, name)

    def __setattr__(self, name, value):
        setattr(self._function, name, value)

    def __repr__(self):
        return repr(self._function)

    def __reduce__(self):
        return _unpickled, (self._function,)


def _unpickled(function):
    return function


class _Bound:
    """A jitted method of an object."""

    def __init__(self, watched, instance, bound):
        self._watched, self._instance, self._bound = watched, instance, bound

    def __call__(self, *args, **kwargs):
        return self._watched(self._instance, *args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._bound, name)


def _inputs(args, kwargs):
    """The arguments with what holds many arrays left out but for their number."""
    tree = sys.modules["jax"].tree_util
    few = {}
    for name, value in (*enumerate(args), *kwargs.items()):
        leaves = tree.tree_leaves(value)
        few[name] = value if len(leaves) <= _LEAVES else _Many(len(leaves))
    return [v for k, v in few.items() if isinstance(k, int)], {k: v for k, v in few.items() if isinstance(k, str)}


class _Many:
    """Told as "arrays[200]"."""

    shape, dtype = (), "arrays"

    def __init__(self, n):
        self.shape = (n,)


def enter(args, kwargs):
    state = _region.state
    if state.taken or (state.recording is not None and not state.recording.active):
        return
    _region.enter(*_inputs(args, kwargs), framework="jax")


def region(function):
    """The jitted function, each call of which is a start of the region."""
    if isinstance(function, Watched):
        return function

    def called(_watched, inner, args, kwargs):
        enter(args, kwargs)
        return inner(*args, **kwargs)

    return Watched(function, called)


class Jitted:
    """Watches what jax.jit returns. With a name: `module:name`, jitted, is the region."""

    def __init__(self, jax, module=None, name=None):
        self._module, self._name = module, name
        self._region = None  # the Watched that is it
        self._seen = {}  # id -> Watched, called once
        self._depth = threading.local()
        self._replace(jax)

    def _replace(self, jax):
        for module, name in ((jax, "jit"), (sys.modules.get("jax.experimental.pjit"), "pjit")):
            original = getattr(module, name, None)
            if callable(original):
                setattr(module, name, self._jit(original))

    def _jit(self, original):
        @functools.wraps(original)
        def jit(*args, **kwargs):
            made = original(*args, **kwargs)
            if not hasattr(made, "lower"):  # jit(static_argnames=...) used as a decorator
                return lambda function: self._watch(made(function))
            return self._watch(made)

        return jit

    def _watch(self, function):
        module = getattr(function, "__module__", None) or ""
        if module == "jax" or module.startswith(("jax.", "jaxlib.")):
            return function
        if self._name is not None:
            qualified = getattr(function, "__qualname__", "").replace("<locals>.", "")
            if self._name != qualified or module not in (self._module, "__mp_main__"):
                return function
            if self._module == "__main__":
                sys.setprofile(None)  # it has been found
            return region(function)
        return Watched(function, self._called)

    def forget(self):
        """As before the first call."""
        self._seen.clear()
        self._region, self._depth = None, threading.local()

    def _called(self, watched, function, args, kwargs):
        if self._region is not None:
            if watched is self._region and not getattr(self._depth, "value", 0):
                enter(args, kwargs)
            return function(*args, **kwargs)
        depth = getattr(self._depth, "value", 0)
        if not depth:
            self._outermost(watched, args, kwargs)
        self._depth.value = depth + 1
        try:
            return function(*args, **kwargs)
        finally:
            self._depth.value = depth

    def _outermost(self, watched, args, kwargs):
        state = _region.state
        if state.explicit or state.taken or state.framework not in (None, "jax"):
            return
        if id(watched) in self._seen:
            self._region = watched
            self._seen.clear()
            enter(args, kwargs)
        else:
            if not self._seen:
                enter((), {})  # the warm-up, of a function that need not be the region
            self._seen[id(watched)] = watched
