"""A program that records itself over the C ABI and needs no framework.

python program.py [crash | "LINE for the launcher's socket"]

Two operators a step, a values and three order steps, and a trace of about half a second.
"""

import os
import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from joulediff import _abi  # noqa: E402


def tensor(recorder, number, role):
    info = _abi.TensorInfo(id=number, storage=number, version=0, dims=1, role=role)
    info.shape[0], info.stride[0] = 64, 1
    print_of = info.fingerprint
    print_of.count, print_of.dtype, print_of.distinct = 64, 1, 3
    print_of.mean = print_of.mean_abs = print_of.rms = print_of.max = 1.0 + number
    print_of.own[0] = print_of.bf16[0] = print_of.fp16[0] = 1000 + number
    recorder.tensor(info)


def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def step(recorder, which, index, seconds):
    begin = recorder.now()
    for place in range(2):
        if which == _abi.ORDER:
            recorder.operator_begin(index, place, b"test.double")
        work(seconds / 2)
        if which == _abi.ORDER:
            recorder.operator_end()
    recorder.step(which, index, begin, recorder.now())


def say(line):
    with socket.socket(socket.AF_UNIX) as launcher:
        launcher.connect(os.environ["JOULEDIFF_SOCKET"])
        launcher.sendall(line.encode() + b"\n")
        launcher.recv(100)


def main(arguments):
    recorder = _abi.load()
    if recorder is None:
        sys.exit("program.py: no recorder")
    recorder.fact("manifest", framework="none", work_unit="item", work_per_step=64)
    for number, role in ((1, _abi.INPUT), (2, _abi.COMPUTED), (3, _abi.COMPUTED)):
        tensor(recorder, number, role)
    for place in range(2):
        recorder.operator(place, "test.double", [place + 1], [place + 2],
                          {"signature": "double(64)", "view": False})
    step(recorder, _abi.VALUES, 0, 0.001)
    recorder.flush()
    if "crash" in arguments:
        os.abort()
    for line in arguments:
        say(line)
    for index in range(3):
        step(recorder, _abi.ORDER, index, 0.01)
    for index in range(50):
        step(recorder, _abi.TRACE, index, 0.01)


if __name__ == "__main__":
    main(sys.argv[1:])
