#!/usr/bin/env python3
"""Holds `joulediff mlperf` against a folder of real submissions and its expected.json.

    bench/mlperf_expected.py DIR --program build/release/bin/joulediff

DIR (or $JOULEDIFF_MLPERF_DATA) holds one folder for each submission and expected.json: the figures
that were published for each, the values by the official rule and by trapezoid, and the defects that
are known. Every value is held to 1e-6, published ones that say so to what they say. Prints one line
for each value; ends with 1 if any is off, and with 77 where there is no such folder.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

TOLERANCE = 1e-6


class Tally:
    def __init__(self):
        self.lines, self.wrong = [], 0

    def value(self, what, got, wanted, tolerance=TOLERANCE):
        fine = got is not None and abs(got - wanted) <= tolerance * max(abs(wanted), 1e-300)
        self.say(fine, f"{what}: {got!r}, wanted {wanted!r}")

    def say(self, fine, line):
        self.wrong += not fine
        self.lines.append(("ok   " if fine else "OFF  ") + line)


def rules(submission):
    found = {o["rule"]: o["message"] for o in submission["objections"]}
    found.update({c["id"]: c["message"] for c in submission["checks"]
                  if c["ours"] in ("fail", "warn")})
    return found


def inference(tally, got, wanted):
    score, sampling = got["score"], got["sampling"]
    tally.value("seconds of the window", score["seconds"], wanted["window_s"], 1e-9)
    tally.value("readings", sampling["readings"], wanted["samples_in_window"])
    tally.say(sampling["nonpositive"] == wanted["nonpositive_samples"],
              f"readings at or below 0: {sampling['nonpositive']}")
    tally.value("watts", score["official_watts"], wanted["avg_W_positive_only"])
    tally.value("joules by the official rule", score["official_joules"],
                wanted["energy_J_avg_rule"])
    tally.value("joules by trapezoid", score["trapezoid_joules"], wanted["energy_J_trapezoid"])
    tally.value("watts of ranging", score["ranging_watts"], wanted["ranging_avg_W"])
    tally.value("largest gap", sampling["largest_gap"], wanted["max_gap_s"], 1e-6)
    tally.value("power factor", sampling["power_factor"], wanted["mean_power_factor"], 1e-4)
    tally.value("least watts before", sampling["least_watts_before"], wanted["prewindow_min_W"])
    official = wanted["official"]
    if "system_power_W" in official:
        tally.value("published watts", score["official_watts"], official["system_power_W"])
        tally.value("published rate", score["rate"], official["samples_per_s"])
    if "mJ_per_stream" in official:
        tally.value("published mJ a stream", score["official"], official["mJ_per_stream"])
    for key in wanted:
        if key.startswith("computed_per_joule"):
            tally.value("samples a joule", score["official"], wanted[key])
        if key == "computed_mJ_per_query":
            tally.value("mJ a query", score["official"], wanted[key])
    if "known_defect" in wanted:
        bad, all_ = re.match(r"(\d+) of (\d+)", wanted["known_defect"]).groups()
        found = rules(got).get("SA3", "")
        tally.say(f"{bad} of {all_} readings are invalid" in found, f"SA3: {found}")


def tiny(tally, got, wanted):
    score = got["score"]
    tally.value("published uJ", score["published"], wanted["official"]["uJ_per_inference"])
    tally.value("median uJ", score["official"], wanted["computed_median"])
    tally.value("off the published", abs(score["official"] / score["published"] - 1),
                wanted["rel_err"], 1e-4)
    for window, per_inference, limits in zip(score["windows"], wanted["computed_uJ_per_inf"],
                                             wanted["windows"]):
        tally.value(window["name"], 1e6 * window["official_joules"] / window["units"],
                    per_inference)
        tally.value(window["name"] + " seconds", window["seconds"], limits[1] - limits[0], 1e-9)


def training(tally, got, wanted):
    score, found = got["score"], rules(got)
    tally.value("published joules", score["official"], wanted["official_energy_J"])
    tally.value("joules by the official rule", score["official"],
                wanted["olympic_prorated_x_scaling_J"])
    tally.value("joules by trapezoid", score["trapezoid"],
                wanted["olympic_in_window_x_scaling_J"])
    for window, seconds, prorated, inside in zip(
            score["windows"], wanted["time_to_train_ms"], wanted["energy_J_prorated_per_run"],
            wanted["energy_J_in_window_trapezoid_per_run"]):
        tally.value(window["name"] + " seconds", window["seconds"], seconds / 1000, 1e-9)
        tally.value(window["name"] + " official", window["official_joules"], prorated)
        tally.value(window["name"] + " trapezoid", window["trapezoid_joules"], inside)
    for defect, rule, part in (
            ("power_measurement_stop", "mlperf.power_stop", "in 10 of 10 power logs"),
            ("median sampling gap 2.0 s", "SA1", "each 2.0"),
            ("max gap up to 20 s", "SA2", "gap is 20.0 s"),
            ('metadata is ""', "mlperf.metadata", "in 10 of 10 power logs"),
            ("prorates mean power", "TW1", "whole log"),
            ("log covers", "TW2", "longer than the run")):
        if any(defect in known for known in wanted["known_defects"]):
            message = found.get(rule, "")
            tally.say(part in message, f"{rule}: {message}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", default=os.environ.get("JOULEDIFF_MLPERF_DATA"))
    arguments.add_argument("--program", required=True, help="the joulediff to test")
    arguments.add_argument("--verbose", action="store_true", help="print what agrees, too")
    options = arguments.parse_args()
    if not options.folder or not pathlib.Path(options.folder, "expected.json").exists():
        print("skipped: no folder of submissions; set JOULEDIFF_MLPERF_DATA")
        return 77
    expected = json.loads(pathlib.Path(options.folder, "expected.json").read_text())
    done = subprocess.run([options.program, "mlperf", options.folder, "--json"],
                          capture_output=True, text=True, check=True)
    found = {pathlib.Path(s["path"]).name if pathlib.Path(s["path"]).name != "performance"
             else pathlib.Path(s["path"]).parent.name: s
             for s in json.loads(done.stdout)["submissions"]}
    wrong = values = 0
    for name, wanted in expected.items():
        tally = Tally()
        if name not in found:
            tally.say(False, "not found")
        elif "window_s" in wanted:
            inference(tally, found[name], wanted)
        elif "time_to_train_ms" in wanted:
            training(tally, found[name], wanted)
        else:
            tiny(tally, found[name], wanted)
        print(f"{name}: {len(tally.lines) - tally.wrong} of {len(tally.lines)}")
        for line in tally.lines:
            if options.verbose or line.startswith("OFF"):
                print("  " + line)
        wrong += tally.wrong
        values += len(tally.lines)
    print(f"mlperf_expected: {values - wrong} of {values} as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
