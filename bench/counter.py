"""The board's energy counter, read beside a program that runs elsewhere.

It moves about every 100 ms, and a read costs milliseconds: it is read as often as it answers, each new
value is a tick at the middle of that read, and between ticks energy is a straight line.
"""

import bisect
import ctypes
import os
import threading
import time

LEAST_TICKS = 3  # inside a window
PAUSE = 0.002    # between two reads


def between(ticks, begin, end):
    """Joules from begin to end (ns); ticks: [(ns, J)] in order. None: too few of them, or outside."""
    inside = sum(begin <= at <= end for at, _ in ticks)
    if inside < LEAST_TICKS or not ticks[0][0] <= begin or not end <= ticks[-1][0]:
        return None
    return at(ticks, end) - at(ticks, begin)


def at(ticks, time_ns):
    after = max(1, bisect.bisect_left(ticks, (time_ns,)))
    (t0, e0), (t1, e1) = ticks[after - 1], ticks[after]
    return e0 + (e1 - e0) * (time_ns - t0) / (t1 - t0)


class Board:
    """The first board that CUDA_VISIBLE_DEVICES shows; None where there is none: open()."""

    def __init__(self, nvml, handle):
        self._nvml, self._handle = nvml, handle

    @staticmethod
    def open():
        try:
            nvml = ctypes.CDLL(os.environ.get("JOULEDIFF_NVML", "libnvidia-ml.so.1"))
        except OSError:
            return None
        if nvml.nvmlInit_v2() != 0:
            return None
        handle, which = ctypes.c_void_p(), os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        found = (nvml.nvmlDeviceGetHandleByIndex_v2(int(which), ctypes.byref(handle))
                 if which.isdigit() else
                 nvml.nvmlDeviceGetHandleByUUID(which.encode(), ctypes.byref(handle)))
        board = Board(nvml, handle)
        return board if found == 0 and board.joules() is not None else None

    def joules(self):
        value = ctypes.c_ulonglong()
        failed = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle, ctypes.byref(value))
        return None if failed else value.value / 1e3


class Watch:
    """The ticks of a board's counter as long as the `with` block lasts, in `ticks`."""

    def __init__(self, board):
        self.board, self.ticks = board, []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        if self.board:
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        if self.board:
            self._thread.join()

    def _read(self):
        last = None
        while not self._stop.is_set():
            begin, value = time.monotonic_ns(), self.board.joules()
            middle = (begin + time.monotonic_ns()) // 2
            if value is not None and value != last:
                if last is not None:  # when the first one moved is not known
                    self.ticks.append((middle, value))
                last = value
            time.sleep(PAUSE)


def wait_for_ticks(watch, windows, most=1.0):
    """Until the counter has moved after the last window, a second at most."""
    if not watch.board or not windows:
        return
    end, late = max(w["end"] for w in windows), time.monotonic() + most
    while time.monotonic() < late and not (watch.ticks and watch.ticks[-1][0] >= end):
        time.sleep(0.01)
