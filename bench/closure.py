#!/usr/bin/env python3
"""Does the ledger close? All of its lines but `unattributed` against the energy counter: see README.md.

    python bench/closure.py --program build/release/bin/joulediff
"""

import argparse
import json
import statistics
import sys
import tempfile

import counter
import paired
import recordings
from recordings import joules, share

LIMIT = 0.03
MOST = 0.10  # however badly the program repeats
PROGRAMS = {"gpt2-4": ("gpt2", 4), "gpt2-32": ("gpt2", 32), "vit-8": ("vit", 8),
            "vit-256": ("vit", 256), "llama-1": ("llama", 1), "llama-16": ("llama", 16)}
TINY = {"tiny-8": ("tiny", 8), "tiny-512": ("tiny", 512)}


def energies(windows, ticks):
    """Joules a step of each repeat whose window the counter's ticks cover; without a counter,
    processor seconds a step."""
    if ticks is None:
        return [w["processor_seconds"] / w["steps"] for w in windows]
    found = ((counter.between(ticks, w["begin"], w["end"]), w["steps"]) for w in windows)
    return [energy / steps for energy, steps in found if energy is not None]


def spread(values):
    """Mean of the repeats, and the half width of its 95 % interval, relative; None with fewer than 2."""
    if len(values) < 2:
        return {"mean": None, "interval": None, "range": None, "values": values}
    found = paired.interval(values)
    return {"mean": found.mean, "interval": (found.high - found.mean) / found.mean,
            "range": (max(values) - min(values)) / statistics.fmean(values), "values": values}


def verdict(unattributed, interval):
    """Within the limit, or within what the program itself repeats to."""
    if unattributed is None:
        return "unknown"
    if abs(unattributed) <= LIMIT:
        return "within 3 %"
    return "within repeats" if abs(unattributed) <= min(interval or 0, MOST) else "NO"


def repeat(recorder, words, args, board):
    """Of fresh processes without the recorder; kept beside the run files."""
    kept = recorder.path("-".join(words[1::2]) + "-repeats.json")
    if kept.exists():
        return json.loads(kept.read_text())
    windows = []
    with tempfile.TemporaryDirectory(prefix="joulediff-bench-") as folder, \
            counter.Watch(board) as watch:
        # One by one where the forks of one process cannot have the device.
        for count, times in ((args.repeats, 1), (1, args.repeats)):
            told = f"{folder}/{count}-{times}.json"
            for _ in range(times):
                done = recorder.late or recordings.bounded(
                    [*recorder.command(words), "--repeats", str(count), "--seconds",
                     str(args.seconds), "--told", told])[0]
                if not done:
                    with open(told) as file:
                        windows += json.load(file)
            if windows or recorder.late:
                break
        # The counter's next tick ends the last window.
        counter.wait_for_ticks(watch, windows)
    found = energies(windows, watch.ticks if board else None)
    if len(found) == args.repeats:
        kept.write_text(json.dumps(found))
    return found


def measure(recorder, name, model, batch, args, board):
    """The figures of one program; None where it was not recorded."""
    words = ["--model", model, "--batch", str(batch)]
    options = ["--label", name, "--budget", args.budget, "--blocks", str(args.blocks),
               "--trace-seconds", str(args.seconds)]
    run = recorder.one(name, words, options)
    shown = run and recorder.show(run)
    if not shown:
        return None
    found = recordings.closure(shown)
    repeats = spread(repeat(recorder, words, args, board))
    return {"name": name, "model": model, "batch": batch, "device": shown["run"]["device"],
            "framework": shown["run"]["framework"], **found, "repeats": repeats,
            "conditions": shown["conditions"], "warnings": recordings.warnings(shown),
            "verdict": verdict(found["unattributed"], repeats["interval"])}


def conditions_table(rows):
    yield (f"{'model':<8}{'batch':>5}{'ms a step':>11}{'recognised':>12}{'SM, trace':>12}{'held':>7}"
           f"{'SM, replay':>12}{'held':>7}")
    for row in rows:
        trace, held, replay, held_then = recordings.clocks(row["conditions"])
        yield (f"{row['model']:<8}{row['batch']:>5}{1e3 * row['seconds']:>11.3f}"
               f"{share(row['recognised']):>12}{trace:>12}{held:>7}{replay:>12}{held_then:>7}")


def table(rows):
    yield (f"{'model':<8}{'batch':>5}{'W':>7}{'measured':>12}{'predicted':>12}{'unattributed':>14}"
           f"{'repeats':>10}  verdict")
    for row in rows:
        yield (f"{row['model']:<8}{row['batch']:>5}{row['measured'] / row['seconds']:>7.0f}"
               f"{joules(row['measured']) + ' J':>12}{joules(row['predicted']) + ' J':>12}"
               f"{share(row['unattributed'], signed=True):>14}"
               f"{'+-' + share(row['repeats']['interval']):>10}  {row['verdict']}")


def judged(rows, names):
    claims = [(f"{row['name']}: {share(row['unattributed'], 2, True)} is unattributed, at most "
               f"{LIMIT:.0%} or the repeats' {share(row['repeats']['interval'], 2)}",
               row["verdict"].startswith("within")) for row in rows]
    missing = sorted(set(names) - {row["name"] for row in rows})
    return claims + [(f"{name}: recorded", False) for name in missing]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    recordings.add_arguments(parser, "build/claims/closure")
    parser.add_argument("--model", choices=("all", "tiny"), default="all",
                        help="tiny: try the script out")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of " + " ".join(PROGRAMS))
    parser.add_argument("--budget", default="50s", help="of a recording (default: 50s)")
    parser.add_argument("--blocks", type=int, default=1, help="processes a recording (default: 1)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of a trace, of a repeat")
    args = parser.parse_args()
    programs = TINY if args.model == "tiny" else PROGRAMS
    if unknown := sorted(set(args.only or ()) - programs.keys()):
        parser.error(f"--only {' '.join(unknown)}: there are {' '.join(programs)}")
    recorder, made = recordings.Recordings(args), recordings.Rows(args, "programs", table)
    board = counter.Board.open() if args.device == "cuda" else None
    chosen = {name: what for name, what in programs.items() if name in (args.only or programs)}
    for name, (model, batch) in chosen.items():
        if row := measure(recorder, name, model, batch, args, board):
            made.add(row)
    rows = made.rows
    for row in rows:
        for warning in row["warnings"]:
            print(f"{row['name']}: {warning}")
    for text in (conditions_table(rows), table(rows)):
        print("", *text, sep="\n")
    print()
    return recordings.conclude(args, {"programs": rows}, judged(rows, chosen),
                               {row["boundary"] for row in rows})


if __name__ == "__main__":
    sys.exit(main())
