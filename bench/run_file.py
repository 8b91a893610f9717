"""What a run file says of clocks and limits (docs/file-format.md): `show` tells them in words, and only
where they matter."""

import ctypes
import pathlib
import sqlite3
import statistics

import recorded  # noqa: F401  finds spool
import spool

SM_CLOCK, THROTTLE, SENSOR = 5, 8, 3  # sources; the kind of a series
TRACE, OPERATOR = 3, 0                # the pass of a step; the kind of a replay
LIMITS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # power cap, slowdowns, thermal limits, power brake


UNKNOWN = {"sm_mhz": None, "held_back": None}


class Unreadable(Exception):
    """What is needed to read a run file's series is not on this machine."""


def conditions(path):
    """{"trace", "replay": {"sm_mhz": mean or None, "held_back": share of samples or None}}"""
    try:
        return _conditions(path)
    except Unreadable as error:
        print(f"{pathlib.Path(path).name}: {error}", flush=True)
        return {"trace": UNKNOWN, "replay": UNKNOWN}


def _conditions(path):
    file = database(path)
    windows = {
        "trace": file.execute('SELECT block, min("begin"), max("end") FROM step WHERE pass = ? '
                              "GROUP BY block", (TRACE,)).fetchall(),
        "replay": last_windows(file.execute('SELECT block, signature, "begin", "end" FROM replay '
                                            'WHERE kind = ? ORDER BY "begin"', (OPERATOR,)).fetchall())}
    clocks, limits = sensor(file, SM_CLOCK), sensor(file, THROTTLE)
    held = {block: [(t, bool(v & LIMITS)) for t, v in samples] for block, samples in limits.items()}
    return {which: {"sm_mhz": mean_within(clocks, found), "held_back": mean_within(held, found)}
            for which, found in windows.items()}


def last_windows(replays):
    """[(block, begin, end)] of what was measured last of each operator: before, it may have been replayed at
    another clock than the program's, a pause of more than 50 ms apart."""
    last = {}
    for block, signature, begin, end in replays:
        window = last.setdefault((block, signature), [begin, end])
        if begin - window[1] > 50_000_000:
            window[0] = begin
        window[1] = max(window[1], end)
    return [(block, begin, end) for (block, _), (begin, end) in last.items()]


def mean_within(samples, windows):
    """samples: {block: [(ns, value)]}; windows: [(block, begin, end)]. None: no sample lies in one."""
    inside = [value for block, begin, end in windows for at, value in samples.get(block, ())
              if begin <= at <= end]
    return statistics.fmean(inside) if inside else None


def database(path):
    sealed = pathlib.Path(path).read_bytes()
    file = sqlite3.connect(":memory:")
    file.row_factory = sqlite3.Row
    file.deserialize(sealed[:int.from_bytes(sealed[-24:-16], "little")])
    return file


def sensor(file, source):
    """{block: [(ns, value)]} of the board that the program used, the first where that is not known."""
    uuid = file.execute("SELECT device_uuid FROM manifest").fetchone()[0]
    found = {}
    for series in file.execute("SELECT * FROM series WHERE kind = ? AND source = ? ORDER BY id",
                               (SENSOR, source)).fetchall():
        channel = series["channel"] if "channel" in series.keys() else ""  # from format 2 on
        if uuid and channel and uuid not in channel and channel not in uuid:
            continue
        found.setdefault(series["block"], []).extend(
            zip(*(column(file, series["id"], name) for name in ("time", "value")), strict=True))
    return found


def column(file, series, name):
    values = []
    for (data,) in file.execute("SELECT data FROM chunk WHERE series = ? AND column = ? ORDER BY id",
                                (series, name)):
        last = 0
        for number in spool.numbers(unpacked(data)):
            last += (number >> 1) ^ -(number & 1)
            values.append(last)
    return values


def unpacked(frame):
    """Of one zstd frame, which states its size; Python has no zstd before 3.14, every Linux has."""
    try:
        zstd = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise Unreadable(f"clocks are not known: {error}") from error
    for function, result in (("ZSTD_getFrameContentSize", ctypes.c_ulonglong),
                             ("ZSTD_decompress", ctypes.c_size_t)):
        getattr(zstd, function).restype = result
    size = zstd.ZSTD_getFrameContentSize(frame, ctypes.c_size_t(len(frame)))
    if size > 1 << 30:
        raise ValueError("a frame that states no size")
    out = ctypes.create_string_buffer(size)
    done = zstd.ZSTD_decompress(out, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame)))
    if done != size:
        raise ValueError("a damaged frame")
    return out.raw
