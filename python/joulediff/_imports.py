"""What is done when the program has imported a module."""

import importlib.util
import sys

from joulediff import _abi


def after_import(name, action):
    """action(module) when it has been imported; at once if it has been already."""
    if name in sys.modules:
        _quietly(action, sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, action))


def _quietly(action, module):
    try:
        action(module)
    except Exception as error:  # noqa: BLE001
        recorder = _abi.load()
        if recorder is not None:
            recorder.failed(error)


class _Finder:
    """Lets the other finders find the module, and acts once its loader has run it."""

    def __init__(self, name, action):
        self._name, self._action = name, action

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader = getattr(spec, "loader", None)
        if not hasattr(loader, "exec_module"):
            return spec
        execute, before = loader.exec_module, vars(loader).get("exec_module")

        def exec_module(module):
            if before is None:
                del loader.exec_module
            else:  # another of us waits for the same module
                loader.exec_module = before
            execute(module)
            _quietly(self._action, module)

        loader.exec_module = exec_module
        return spec
