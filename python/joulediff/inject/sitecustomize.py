"""Put in front of PYTHONPATH by `joulediff record`: arms the plug-ins in every Python process.

Without JOULEDIFF_SPOOL it only hands on to the sitecustomize that it hides, if there is one.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _hidden_sitecustomize():
    """Runs the sitecustomize that would have been found without this folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def _arm():
    try:
        from joulediff import _region
    except ImportError:
        sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
        from joulediff import _region
    _region.install()


try:
    _hidden_sitecustomize()
finally:
    if os.environ.get("JOULEDIFF_SPOOL"):
        try:
            _arm()
        except Exception as error:  # noqa: BLE001  the program must start
            print(f"joulediff: not recording: {error}", file=sys.stderr)
