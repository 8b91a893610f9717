#!/usr/bin/env python3
"""A recording that lasts for long: does anything that we hold grow with it? See README.md.

    nice python bench/long_run.py --program build/release/bin/joulediff --minutes 180
"""

import argparse
import ctypes
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from joulediff import _abi  # noqa: E402

STEP_SECONDS = 0.1
OPERATORS = 4
KERNEL = 10  # CUPTI's concurrent kernel
NAMES = (b"_Z4gemmPKfS0_Pf", b"_Z7softmaxPf", b"_Z9layernormPf", b"_Z4geluPf")


class Launch(ctypes.Structure):
    """FakeLaunch of tests/fakes/cupti/fake_cupti.h."""

    _fields_ = [("kind", ctypes.c_int), ("name", ctypes.c_char_p), ("start", ctypes.c_uint64),
                ("end", ctypes.c_uint64), ("stream", ctypes.c_uint32), ("grid", ctypes.c_uint32),
                ("block", ctypes.c_uint32), ("copy_kind", ctypes.c_uint8),
                ("bytes", ctypes.c_uint64), ("device", ctypes.c_uint32),
                ("context", ctypes.c_uint32), ("graph_node", ctypes.c_uint64)]


class Program:
    """What the recorder is loaded into: a chain of operators, whose kernels a fake device runs."""

    def __init__(self, kernels):
        self.recorder = _abi.load() or sys.exit("the recorder cannot be loaded")
        self.call = ctypes.CDLL(os.environ["JOULEDIFF_CUPTI"]).fake_cupti_call
        self.call.argtypes = [ctypes.POINTER(Launch)]
        self.kernels, self.index, self.launched = kernels, 0, 0

    def step(self, which, seconds):
        begin = self.recorder.now()
        each = self.kernels // OPERATORS
        nanoseconds = int(seconds * 0.8e9 / max(1, self.kernels))
        at = begin + 1000
        for operator in range(OPERATORS):
            if which == _abi.ORDER:
                self.recorder.operator_begin(self.index, operator, b"bench.operator")
            for i in range(each):
                self.call(Launch(kind=KERNEL, name=NAMES[operator], start=at, end=at + nanoseconds,
                                 stream=7, grid=operator + 1, block=256))
                at += nanoseconds + 1 + i % 3
            if which == _abi.ORDER:
                self.recorder.operator_end()
        self.launched += each * OPERATORS if which == _abi.TRACE else 0
        time.sleep(max(0.0, seconds - (self.recorder.now() - begin) * 1e-9))
        self.recorder.step(which, self.index, begin, self.recorder.now(), "float32[64]")
        self.index += 1

    def values(self):
        self.recorder.fact("manifest", framework="none", work_unit="item", work_per_step=64)
        for value in range(OPERATORS + 1):
            info = _abi.TensorInfo(id=value + 1, storage=value + 1, dims=1,
                                   role=_abi.COMPUTED if value else _abi.INPUT)
            info.shape[0], info.stride[0] = 64, 1
            info.fingerprint.count, info.fingerprint.dtype, info.fingerprint.distinct = 64, 1, 3
            for moment in ("mean", "mean_abs", "rms", "max"):
                setattr(info.fingerprint, moment, 2.0 + value)
            for lanes in ("own", "bf16", "fp16"):
                getattr(info.fingerprint, lanes)[0] = 1000 + value
            self.recorder.tensor(ctypes.byref(info))
        for operator in range(OPERATORS):
            self.recorder.operator(operator, "bench.operator", [operator + 1], [operator + 2],
                                   {"signature": f"operator {operator}", "view": False})
        self.step(_abi.VALUES, STEP_SECONDS)

    def run(self, seconds, steps):
        """`steps`: as many, one after another; else as many as fit in the time."""
        self.values()
        self.recorder.kernels(_abi.ORDER)
        for _ in range(3):
            self.step(_abi.ORDER, STEP_SECONDS)
        self.recorder.kernels(_abi.TRACE)
        end, first = time.monotonic() + seconds, self.index
        while self.index - first < steps if steps else time.monotonic() < end:
            self.step(_abi.TRACE, seconds / steps if steps else STEP_SECONDS)
        self.recorder.kernels(_abi.WARMUP)
        return {"kernels": self.launched, "steps": self.index - first}


def resident_mib(pid):
    try:
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def recorded(path):
    """Kernels and steps of the trace pass, and readings of each source, as the file has them."""
    sealed = pathlib.Path(path).read_bytes()
    with sqlite3.connect(":memory:") as file:
        file.deserialize(sealed[:int.from_bytes(sealed[-24:-16], "little")])
        one = lambda query: file.execute(query).fetchone()[0]  # noqa: E731
        return {"kernels": one("SELECT sum(records) FROM series WHERE kind = 1"),
                "steps": one("SELECT count(*) FROM step WHERE pass = 3"),
                "readings": one("SELECT sum(records) FROM series WHERE kind = 3"),
                "dropped": one("SELECT sum(dropped_kernels) FROM block"),
                "bytes": len(sealed)}


def third(samples, which):
    """The mean of a third of the samples: the start, the middle or the end."""
    size = max(1, len(samples) // 3)
    return statistics.fmean(samples[which * size:(which + 1) * size])


def watch(args, folder):
    program = pathlib.Path(args.program).resolve()
    fakes = program.parent.parent / "lib" / "fakes"
    env = os.environ | {"JOULEDIFF_CUPTI": str(fakes / "libcupti.so.13"),
                        "JOULEDIFF_NVML": str(fakes / "libnvidia-ml.so.1"),
                        "FAKE_NVML_PERIOD": "700"}
    told, output = pathlib.Path(folder, "told"), pathlib.Path(folder, "long.jd")
    command = [str(program), "record", "--quiet", "--blocks", "1", "-o", str(output), "--",
               sys.executable, os.path.abspath(__file__), "--told", str(told), "--minutes",
               str(args.minutes), "--kernels", str(args.kernels), "--steps", str(args.steps)]
    process = subprocess.Popen(command, env=env)
    memory, begin = {"launcher": [], "program": []}, time.monotonic()
    pace = max(1.0, args.minutes * 60 / 600)
    while process.poll() is None:
        pid = told.with_suffix(".pid")
        done = told.exists()  # packing a run takes what the run takes
        for name, which in (("launcher", process.pid),
                            ("program", int(pid.read_text()) if pid.exists() else None)):
            if which and not done and (value := resident_mib(which)):
                memory[name].append((time.monotonic() - begin, value))
        time.sleep(pace)
    if process.returncode:
        sys.exit(f"joulediff record ended with {process.returncode}")
    shown = subprocess.run([str(program), "show", str(output), "--json"], capture_output=True,
                           text=True, check=False)
    energy = json.loads(shown.stdout)["energy"] if shown.returncode == 0 else None
    return json.loads(told.read_text()), recorded(output), memory, energy, shown.stderr.strip()


def judge(args, told, found, memory, energy, trouble):
    """Prints the figures; whether all claims hold."""
    minutes = max(at for samples in memory.values() for at, _ in samples) / 60
    print(f"{minutes:.1f} minutes, {found['steps']:,} steps, {found['kernels']:,} kernels, "
          f"{found['readings']:,} readings of meters, {found['bytes'] / 2**20:.1f} MiB of run file")
    holds = True
    for name, samples in memory.items():
        warm = [mib for at, mib in samples if at > args.warm] or [mib for _, mib in samples]
        start, middle, end = (third(warm, which) for which in range(3))
        bounded = end - middle <= args.growth
        holds = holds and bounded
        print(f"  {name} holds {start:.1f} MiB in the first third, {middle:.1f} in the middle, "
              f"{end:.1f} in the last (most {max(warm):.1f}): bounded {'yes' if bounded else 'NO'}")
    for what in ("kernels", "steps"):
        same = told[what] == found[what]
        holds = holds and same
        print(f"  {what}: {told[what]:,} made, {found[what]:,} in the file "
              f"{'yes' if same else 'NO'}")
    valid = energy is not None and found["dropped"] == 0
    print(f"  the file is read again, nothing dropped: {'yes' if valid else 'NO ' + trouble}")
    if energy:
        print(f"  {energy['joules']:.3g} J a step ({energy['meter']}, {energy['seconds']:.3g} s)")
    return holds and valid


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bin/joulediff", help="joulediff")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--kernels", type=int, default=40, help="a step")
    parser.add_argument("--steps", type=int, default=0,
                        help="make so many in the time, however fast; 0: one each 0.1 s")
    parser.add_argument("--growth", type=float, default=4, help="MiB from the middle to the end")
    parser.add_argument("--warm", type=float, default=0, help="seconds of memory that do not count")
    parser.add_argument("--folder", help="where spools are kept for a while (default: $TMPDIR)")
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("--told", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.told:  # the program itself
        pathlib.Path(args.told + ".pid").write_text(str(os.getpid()))
        told = Program(args.kernels).run(args.minutes * 60, args.steps)
        pathlib.Path(args.told).write_text(json.dumps(told))
        return 0
    with tempfile.TemporaryDirectory(prefix="joulediff-bench-", dir=args.folder) as folder:
        figures = watch(args, folder)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if judge(args, *figures) else 1


if __name__ == "__main__":
    sys.exit(main())
