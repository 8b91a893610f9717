#!/usr/bin/env python3
"""Where there is no difference, is none found? A program against itself: see README.md.

    python bench/no_difference.py --program build/release/bin/joulediff
"""

import argparse
import statistics
import sys

import recordings
from recordings import share

GATE = 0.05
MOST_FINDINGS = 1
SPREAD = 0.02
MATTERS = 0.005  # of the run: what a finding must save at least
BATCH = {"mlp": 64, "tiny": 512}


def compared(number, report):
    """One comparison; a finding is a difference surely beyond the gate, on either side, or a finding of
    the report that has a verdict."""
    difference, gate = report["energy"]["difference"], report.get("gate")
    row = {"number": number, "comparable": report["comparable"]["ok"], "difference": difference,
           "gate": gate, "boundary": report["energy"]["a"] and report["energy"]["a"]["boundary"],
           "noise_floor": report["energy"]["noise_floor"],
           "findings": [f"{one['verdict']} in {one['side']}: {one['cause']['message']}"
                        for one in report["findings"] if one["verdict"] in ("waste", "trade-off")]}
    low, high = (gate["low"], gate["high"]) if gate else (None, None)  # null: no bound is known
    beyond = low is not None and low > GATE or high is not None and high < -GATE
    if not difference:
        row["findings"].append("; ".join(["not compared"] + [
            reason["message"] for reason in report["comparable"]["reasons"]]))
    return {**row, "beyond_gate": beyond, "found": beyond or bool(row["findings"])}


def half_width(rows):
    """Of the comparisons' intervals, the median: how small a difference they would have told."""
    widths = [(row["difference"]["high"] - row["difference"]["low"]) / 2 for row in rows
              if row["difference"] and row["difference"]["low"] is not None]
    return statistics.median(widths) if widths else None


def comparisons_table(rows):
    yield f"{'comparison':>10}{'difference':>12}{'95 % interval':>22}{'noise floor':>13}  finding"
    for row in rows:
        d = row["difference"] or {"value": None, "low": None, "high": None}
        told = row["findings"] + ["beyond the gate"] * row["beyond_gate"]
        ends = f"{share(d['low'], 2, True)} to {share(d['high'], 2, True)}"
        yield (f"{row['number']:>10}{share(d['value'], 2, True):>12}{ends:>22}"
               f"{share(row['noise_floor'], 2):>13}  {'; '.join(told)[:40] or 'none'}")


def repeated(shown):
    """The operators that were measured in each of these runs and matter: their energies' spread.

    `deviation`: of the farthest run from their mean, relative; `spread`: the standard deviation."""
    each = [{(one["name"], place(one), one["calls"]): one for one in run["operators"]
             if one["standing"] in ("replayed", "modelled") and one["joules"]} for run in shown]
    rows = []
    for key in each[0] if len(each) > 1 else ():
        if not all(key in run for run in each):
            continue
        values = [run[key]["joules"] for run in each]
        if max(run[key]["share_of_run"] for run in each) < MATTERS:
            continue
        mean = statistics.fmean(values)
        rows.append({"operator": key[0], "where": key[1], "calls": key[2], "joules": values,
                     "share_of_run": each[0][key]["share_of_run"],
                     "spread": statistics.stdev(values) / mean,
                     "deviation": max(abs(value - mean) for value in values) / mean})
    return rows


def place(one):
    return f"{one['where']['file']}:{one['where']['line']}" if one["where"] else ""


def operators_table(rows):
    yield f"{'operator':<36}{'calls':>6}{'of the run':>12}{'mean':>12}{'spread':>9}{'farthest':>10}"
    for row in rows:
        yield (f"{row['operator'][:35]:<36}{row['calls']:>6}{share(row['share_of_run']):>12}"
               f"{statistics.fmean(row['joules']):>10.4g} J{share(row['spread'], 2):>9}"
               f"{share(row['deviation'], 2):>10}")


def judged(comparisons, wanted, operators):
    found = sum(row["found"] for row in comparisons)
    controlled = sum(row["noise_floor"] is not None for row in comparisons)
    claims = [(f"{controlled} comparisons with a noise floor were made, of {wanted}",
               controlled >= wanted),
              (f"{found} of {len(comparisons)} had a finding at a gate of {GATE:.0%}, at most "
               f"{MOST_FINDINGS}", controlled > 0 and found <= MOST_FINDINGS)]
    if not operators:
        return claims + [("operators were measured in several processes", False)]
    worst = max(operators, key=lambda row: row["deviation"])
    return claims + [(f"each operator's energy is within {SPREAD:.0%} of its mean in all processes; "
                      f"the farthest: {worst['operator']}, {share(worst['deviation'], 2)}",
                      worst["deviation"] <= SPREAD)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    recordings.add_arguments(parser, "build/claims/no_difference")
    parser.add_argument("--model", choices=BATCH, default="mlp", help="tiny: try the script out")
    parser.add_argument("--count", "-n", type=int, default=20, help="comparisons (default: 20)")
    parser.add_argument("--processes", type=int, default=4,
                        help="for the operators' spread (default: 4)")
    parser.add_argument("--budget", default="36s", help="of a pair (default: 36s)")
    parser.add_argument("--operator-budget", default="25s", help="of such a process (default: 25s)")
    parser.add_argument("--seconds", type=float, default=1, help="of a trace (default: 1)")
    args = parser.parse_args()
    recorder = recordings.Recordings(args)
    words = ["--model", args.model, "--batch", str(BATCH[args.model]), "--warm", "0.5"]
    trace = ["--trace-seconds", str(args.seconds)]
    runs = [recorder.one(f"process-{n}", words, [*trace, "--blocks", "1", "--budget",
                                                 args.operator_budget])
            for n in range(1, args.processes + 1)]
    shown = [told for run in runs if run and (told := recorder.show(run))]
    operators = repeated(shown)
    print("", *operators_table(operators), "", sep="\n", flush=True)
    made = recordings.Rows(args, "comparisons", comparisons_table)
    for number in range(1, args.count + 1):
        paths = recorder.pair(f"pair-{number:02}", words, [*trace, "--budget", args.budget])
        report = paths and recorder.compare(*paths, "--gate", f"{GATE:.0%}")
        if report:
            made.add(compared(number, report))
    rows = made.rows
    print("", *comparisons_table(rows), f"Their 95 % intervals are +-{share(half_width(rows), 2)} wide, "
          "the median.", "", *operators_table(operators), sep="\n")
    for n, run in enumerate(shown, 1):
        trace_clock, _, replay_clock, held = recordings.clocks(run["conditions"])
        print(f"process {n}: SM clock {trace_clock} in the trace, {replay_clock} in the replay, "
              f"held back {held} of it")
    print()
    figures = {"comparisons": rows, "operators": operators,
               "conditions": [run["conditions"] for run in shown]}
    return recordings.conclude(args, figures, judged(rows, args.count, operators),
                               {row["boundary"] for row in rows if row["boundary"]})


if __name__ == "__main__":
    sys.exit(main())
