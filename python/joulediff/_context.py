"""Where in the program an operator is called: call path, module and phase.

Active in the values pass only. A module's path is its name below the outermost module being called.
A backward operator belongs to the forward operator that made its autograd node: the sequence number
that autograd gave the node is the last one given out when the forward operator is dispatched.
"""

import contextlib
import os
import threading

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from joulediff._stacks import Stacks, call_path

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_DISPATCH = tuple(_TORCH + name for name in (
    "utils/_python_dispatch.py", "_ops.py", "utils/_contextlib.py", "_compile.py",
    "_dynamo/eval_frame.py", "_dynamo/external_utils.py", "_library/"))
_ENGINE = (_TORCH + "autograd/graph.py", _TORCH + "autograd/__init__.py")


def _of_user(path):
    return any(not code.co_filename.startswith((_TORCH, "<")) for code, _ in path)


def inside_engine(path):
    """The frames that autograd's engine has called: all of them on a thread of its own."""
    for i, (code, _) in enumerate(path):
        if code.co_filename.startswith(_ENGINE):
            return path[:i]
    return path


class Context:
    """Patches modules and optimizers between enter() and leave()."""

    def __init__(self, recorder, on_root):
        """on_root(module) is called once for each outermost module."""
        self._stacks, self._on_root = Stacks(recorder), on_root
        self._here = threading.local()
        self._names, self._roots = {}, {}
        self._optimizers = 0
        self._by_sequence = {}
        self._undo = contextlib.ExitStack()

    def enter(self):
        original = torch.nn.Module.__call__

        def __call__(module, *args, **kwargs):  # noqa: N807
            outer = self._push(module)
            try:
                return original(module, *args, **kwargs)
            finally:
                self._here.modules = outer

        torch.nn.Module.__call__ = __call__
        self._undo.callback(setattr, torch.nn.Module, "__call__", original)
        for register, step in ((register_optimizer_step_pre_hook, 1),
                               (register_optimizer_step_post_hook, -1)):
            handle = register(lambda *_, step=step: self._optimizer(step))
            self._undo.callback(handle.remove)

    def leave(self):
        self._undo.close()
        self._names.clear()
        self._roots.clear()  # held until here so that an id() stays one module's

    def _optimizer(self, step):
        self._optimizers += step

    def _push(self, module):
        outer = getattr(self._here, "modules", ())
        names = self._names.get(outer[0]) if outer else None
        if names is None or id(module) not in names:
            self._add_root(module)
            self._here.modules = (id(module), "")
        else:
            self._here.modules = (outer[0], names[id(module)])
        return outer

    def _add_root(self, module):
        if id(module) not in self._roots:
            self._roots[id(module)] = module
            self._names[id(module)] = {id(m): name for name, m in module.named_modules()}
            self._on_root(module)

    def describe(self, index, facts_of):
        """The facts of where operator `index` is called; facts_of(index): those of an earlier one."""
        path = call_path(_DISPATCH)
        node = torch._C._current_autograd_node()
        modules = getattr(self._here, "modules", ())
        facts = {"phase": "forward", "module": modules[1] if modules else ""}
        if node is None:
            given = torch._C._autograd._get_sequence_nr() - 1
            self._by_sequence.setdefault(given, index)
            if self._optimizers > 0:
                facts["phase"] = "optimizer"
        else:
            facts["phase"] = "backward"
            forward = self._by_sequence.get(node._sequence_nr())
            if forward is not None:
                facts["forward"] = forward
                inherited = facts_of(forward)
                facts["module"] = facts["module"] or inherited["module"]
                if not _of_user(inside_engine(path)) and "stack" in inherited:
                    facts["stack"] = inherited["stack"]
        if path and "stack" not in facts:
            facts["stack"] = self._stacks.id_of(path)
        return facts
