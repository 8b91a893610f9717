#!/usr/bin/env python3
"""The same work back to back and in bursts: does the replay say what each costs? See README.md.

    python bench/bursts.py --program build/release/bin/joulediff
"""

import argparse
import sys

import recordings
from recordings import joules, share

LIMIT = 0.05
BATCH = {"pulse": 14, "tiny": 512}
WORK_LINES = ("operators", "static", "overlap")  # the rest is what the device draws between


def judge(name, shown):
    """Figures of one recording. `work`: what the counter says of the work, with all that no line
    explains; `of_work`: that unexplained part of it."""
    found = recordings.closure(shown)
    figures = {"name": name, **found, "conditions": shown["conditions"],
               "warnings": recordings.warnings(shown), "work": None, "predicted_work": None,
               "of_work": None}
    if found["predicted"] is not None:
        predicted = sum(found["lines"][line] or 0 for line in WORK_LINES)
        work = predicted + found["measured"] - found["predicted"]
        figures |= {"work": work, "predicted_work": predicted,
                    "of_work": (work - predicted) / work if work else None}
    return figures


def effect(rows):
    """By how much a step's work costs more in bursts: measured, and predicted; None where unknown."""
    by_name = {row["name"]: row for row in rows}
    if by_name.keys() != {"dense", "bursts"}:
        return None, None
    dense, bursts = by_name["dense"], by_name["bursts"]
    return tuple(bursts[key] / dense[key] - 1 if bursts[key] and dense[key] else None
                 for key in ("work", "predicted_work"))


def table(rows):
    yield (f"{'':<8}{'ms a step':>11}{'W':>6}{'measured':>11}{'predicted':>11}{'off':>9}"
           f"{'of the work':>13}{'SM, trace':>11}{'replay':>10}")
    for row in rows:
        trace, _, replay, _ = recordings.clocks(row["conditions"])
        yield (f"{row['name']:<8}{1e3 * row['seconds']:>11.2f}{row['measured'] / row['seconds']:>6.0f}"
               f"{joules(row['measured']) + ' J':>11}{joules(row['predicted']) + ' J':>11}"
               f"{share(row['unattributed'], signed=True):>9}{share(row['of_work'], signed=True):>13}"
               f"{trace:>11}{replay:>10}")


def judged(rows):
    found = {row["name"]: row for row in rows}
    claims = []
    for name in ("dense", "bursts"):
        row = found.get(name)
        if row is None:
            claims.append((f"{name}: recorded", False))
            continue
        claims.append((f"{name}: the ledger is {share(row['unattributed'], 2, True)} off the counter, "
                       f"at most {LIMIT:.0%}", recordings.within(row["unattributed"], LIMIT)))
        claims.append((f"{name}: and {share(row['of_work'], 2, True)} off what the work alone costs, "
                       f"at most {LIMIT:.0%}", recordings.within(row["of_work"], LIMIT)))
    return claims


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    recordings.add_arguments(parser, "build/claims/bursts")
    parser.add_argument("--model", choices=BATCH, default="pulse", help="tiny: try the script out")
    parser.add_argument("--gap", type=float, nargs=2, default=(0.03, 0.1), metavar=("LOW", "HIGH"),
                        help="seconds between bursts, drawn by lot, so that they do not beat with the "
                        "sensor (default: 0.03 0.1)")
    parser.add_argument("--budget", default="35s", help="of a recording (default: 35s)")
    parser.add_argument("--seconds", type=float, default=6, help="of a trace (default: 6)")
    args = parser.parse_args()
    if not 0 < args.gap[0] <= args.gap[1]:
        parser.error("--gap LOW HIGH: two times above 0, the shorter one first")
    recorder, made = recordings.Recordings(args), recordings.Rows(args, "recordings", table)
    work = ["--model", args.model, "--batch", str(BATCH[args.model])]
    gap = ["--gap", *map(str, args.gap)]
    options = ["--blocks", "1", "--budget", args.budget, "--trace-seconds", str(args.seconds)]
    for name, words in (("dense", work), ("bursts", work + gap)):
        run = recorder.one(name, words, options)
        shown = run and recorder.show(run)
        if shown:
            made.add(judge(name, shown))
    rows = made.rows
    for row in rows:
        for warning in row["warnings"]:
            print(f"{row['name']}: {warning}")
    print("", *table(rows), sep="\n")
    measured, predicted = effect(rows)
    print(f"The work costs {share(measured, signed=True)} more in bursts; the replays say "
          f"{share(predicted, signed=True)}.\n")
    return recordings.conclude(args, {"recordings": rows, "effect": {"measured": measured,
                                                                     "predicted": predicted}},
                               judged(rows), {row["boundary"] for row in rows})


if __name__ == "__main__":
    sys.exit(main())
