#!/usr/bin/env python3
"""How fast `joulediff mlperf` reads power logs: generates them, and measures on one core.

    bench/mlperf_logs.py --program build/release/bin/joulediff --megabytes 1000

Writes submissions of the three kinds of log that a results tree is made of (spl.txt of one channel
and of three with the daemon's own log beside, and node logs of training) until they are as large as
asked for, runs the command over them on one core with all files in memory, and `wc -l` and `sha1sum`
over the same files: no reader that looks at every line, and hashes what the rules say must be
hashed, is faster than these two together. Ends with 1 if it takes longer than --limit seconds.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

READINGS = 40_000  # of one log: eleven hours
BEGIN = datetime.datetime(2024, 7, 12, tzinfo=datetime.timezone.utc)


def clock(seconds):
    moment = BEGIN + datetime.timedelta(seconds=seconds)
    return moment.strftime("%m-%d-%Y %H:%M:%S.") + f"{moment.microsecond // 1000:03}"


def spl(channels):
    lines = []
    for i in range(READINGS):
        watts = 5000 + i % 97
        line = (f"Time,{clock(i + 0.196)},Watts,{watts:.6f},Volts,239.106667,Amps,3.442333,"
                "PF,0.965121,Mark,2024-07-12_15-58-55_testing")
        for c in range(channels):
            line += (f",Ch{c + 1},Watts,{watts / channels:.6f},Volts,239.240000,Amps,3.491000,"
                     "PF,0.966400")
        lines.append(line)
    return "\n".join(lines) + "\n"


def ptd():
    lines = ["07-12-2024 00:00:00.000: Uncertainty checking for YokogawaWT330 is activated",
             "07-12-2024 00:00:00.100: Go with mark '2024-07-12_15-58-55_ranging'"]
    for i in range(READINGS):
        lines.append(f"{clock(i + 0.2)}: ERROR: Can't evaluate uncertainty of this sample!")
        lines.append(f"{clock(i + 0.2)}: WARNING: Uncertainty unknown for the last measurement "
                     "sample!")
    lines.append(f"{clock(READINGS + 1)}: Completed test")
    return "\n".join(lines) + "\n"


def detail():
    def line(key, value):
        return ":::MLLOG " + json.dumps({"key": key, "value": value, "time_ms": 1.0,
                                         "metadata": {"is_error": False}}) + "\n"
    return (line("effective_scenario", "Offline") + line("power_begin", clock(100)) +
            line("power_end", clock(READINGS - 100)) + line("result_validity", "VALID") +
            line("result_samples_per_second", 1000))


def node():
    start = int(BEGIN.timestamp() * 1000)

    def line(ms, key, value):
        return (':::MLLOG {"namespace": "", "time_ms": %d, "event_type": "POINT_IN_TIME", "key": '
                '"%s", "value": %s, "metadata": {"host": "0", "lineno": 1}}' % (ms, key, value))
    lines = [line(start, "power_measurement_start", "null")]
    lines += [line(start + 1000 * (i + 1), "power_reading", 3000 + i % 97 + 0.5)
              for i in range(READINGS)]
    lines.append(line(start + 1000 * READINGS, "power_measurement_stop", "null"))
    result = "\n".join([line(start + 100_000, "run_start", "null"),
                        line(start + 1000 * (READINGS - 100), "run_stop", "null")])
    return "\n".join(lines) + "\n", result + "\n"


def generate(folder, wanted):
    one, three, daemon, loadgen = spl(0), spl(3), ptd(), detail()
    readings, result = node()
    session = json.dumps({"session_name": "2024-07-12_15-58-55"})
    written, n = 0, 0

    def put(path, text):
        nonlocal written
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        written += len(text)

    while written < wanted:
        base = folder / f"s{n:04}"
        if n % 3 == 2:
            put(base / "result_0.txt", result)
            for i in range(4):
                put(base / "power/result_0" / f"node_{i}.txt", readings)
        else:
            performance = base / "performance"
            put(performance / "run_1/spl.txt", three if n % 3 else one)
            put(performance / "ranging/spl.txt", three if n % 3 else one)
            put(performance / "power/ptd_logs.txt", daemon)
            for part in ("run_1", "ranging"):
                put(performance / part / "mlperf_log_detail.txt", loadgen)
            for name in ("client.json", "server.json"):
                put(performance / "power" / name, session)
        n += 1
    return written, n


def seconds(command, core):
    begin = os.times()
    wall = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        subprocess.run(command, stdout=nothing, check=True,
                       preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    end = os.times()
    used = end.children_user + end.children_system - begin.children_user - begin.children_system
    return time.monotonic() - wall, used


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--program", required=True, help="the joulediff to measure")
    arguments.add_argument("--megabytes", type=int, default=1000)
    arguments.add_argument("--limit", type=float, default=5.0, help="seconds of processor time")
    arguments.add_argument("--folder", help="keep the logs here")
    arguments.add_argument("--repeats", type=int, default=3)
    options = arguments.parse_args()
    folder = pathlib.Path(options.folder or tempfile.mkdtemp())
    try:
        written, n = generate(folder, options.megabytes * 1_000_000)
        files = [str(p) for p in sorted(folder.rglob("*")) if p.is_file()]
        core = min(os.sched_getaffinity(0))
        rows = {}
        for _ in range(options.repeats):
            for name, command in (("wc -l", ["wc", "-l", *files]),
                                  ("sha1sum", ["sha1sum", *files]),
                                  ("joulediff mlperf", [options.program, "mlperf", str(folder)])):
                wall, used = seconds(command, core)
                rows.setdefault(name, []).append((used, wall))
        print(f"{written / 1e6:.0f} MB in {n} submissions, {len(files)} files; best of "
              f"{options.repeats}, one core")
        for name, runs in rows.items():
            used, wall = min(runs)
            print(f"  {name:<17} {used:6.2f} s of processor, {wall:6.2f} s of time, "
                  f"{written / used / 1e6:6.0f} MB/s")
        ours = min(rows["joulediff mlperf"])[0]
        floor = min(rows["wc -l"])[0] + min(rows["sha1sum"])[0]
        per_limit = options.limit * written / 1e9
        holds = ours <= per_limit
        print(f"  {ours / floor:.1f} times the floor (wc -l and sha1sum); within {per_limit:.1f} s: "
              f"{'yes' if holds else 'NO'}")
        return 0 if holds else 1
    finally:
        if not options.folder:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
