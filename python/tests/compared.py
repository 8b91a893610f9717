"""Two programs recorded and compared with the joulediff command."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from test_recording import PYTHON, library


def program():
    """The joulediff command, and the folder that has its libraries beside this package."""
    named = os.environ.get("JOULEDIFF_PROGRAM")
    builds = [pathlib.Path(named)] if named else sorted(
        (p for p in PYTHON.parent.glob("build/*/bin/joulediff") if "san" not in p.parts[-3]),
        key=lambda p: -p.stat().st_mtime)
    if not builds:
        pytest.skip("joulediff is not built")
    return builds[0]


def compared(folder, *sides):
    """What `compare --json` says of two programs: each the words behind `python`."""
    command = program()
    (folder / "home").mkdir(exist_ok=True)
    for name, where in (("lib", pathlib.Path(library()).parent), ("python", PYTHON)):
        if not (folder / "home" / name).exists():
            (folder / "home" / name).symlink_to(where)
    env = {k: v for k, v in os.environ.items() if not k.startswith("JOULEDIFF_")}
    env |= {"JOULEDIFF_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    runs = []
    for i, words in enumerate(sides):
        runs.append(folder / f"{i}.jd")
        done = subprocess.run(
            [command, "record", "-o", runs[-1], "--force", "--passes", "values,order,trace", "--blocks", "1", "--steps",
             "3", "--trace-seconds", "1", "--work", "token:32", "--quiet", "--stop", "--", sys.executable, *words],
            env=env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
    done = subprocess.run([command, "compare", "--json", *runs], env=env, capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shares(told, but=()):
    """([paired regions], share of the operators of A that are in them, of B); `but`: names that are left out."""
    paired = [r for r in told["regions"] if r["a"]["operators"] and r["b"]["operators"]]

    def count(names):
        return sum(name not in but for name in names)

    found = []
    for side in ("a", "b"):
        total = sum(count(r[side]["operators"]) for r in told["regions"]) + count(
            told["unmatched"][side]["operators"])
        found.append(sum(count(r[side]["operators"]) for r in paired) / total)
    return paired, *found
