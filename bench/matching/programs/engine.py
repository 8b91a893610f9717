"""The engine of examples/engine in C++, and its model in PyTorch. $JOULEDIFF_ENGINE is the first."""

import os
import pathlib
import sys
import tempfile

REFERENCE = pathlib.Path(__file__).resolve().parents[3] / "examples/engine/reference.py"
STEP = ("--prompt", ",".join(map(str, range(3, 27))), "--tokens", "1")


def weights():
    path = pathlib.Path(tempfile.gettempdir(), "joulediff-matching-engine.safetensors")
    if not path.exists():
        os.system(f"{sys.executable} {REFERENCE} write {path}.{os.getpid()}")
        os.replace(f"{path}.{os.getpid()}", path)
    return str(path)


def cpp():
    os.execv(os.environ["JOULEDIFF_ENGINE"], ["engine", weights(), *STEP])


def torch():
    os.execv(sys.executable, [sys.executable, str(REFERENCE), "run", weights(), *STEP])
