import pathlib
import sys

PYTHON = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON.parent / "bench")]
