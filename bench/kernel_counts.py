#!/usr/bin/env python3
"""The recorder's kernels against torch.profiler's, of the same steps: see README.md.

    python bench/kernel_counts.py --model gpt2 --library build/recorder/lib/libjoulediff-record.so
"""

import argparse
import collections
import ctypes
import functools
import json
import pathlib
import statistics
import sys

import recorded

OURS, THEIRS = "recorder", "profiler"
LIMIT = 0.02  # of the median ratio of the summed time
WARM_UP = 3   # steps


@functools.lru_cache(maxsize=None)
def common_name(name):
    """One spelling for both: torch.profiler leaves very long names mangled, and says more of copies
    ("Memcpy HtoD (Pageable -> Device)")."""
    if name.startswith(("Memcpy ", "Memset ")):
        return name.partition(" (")[0].replace("Mem", "mem", 1)
    return demangled(name) if name.startswith("_Z") else name


def demangled(name):
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    plain = ctypes.string_at(text).decode()
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(text)
    return plain


def summed(events):
    """{name: [count, nanoseconds]} of (name, count, nanoseconds)."""
    found = {}
    for name, count, ns in events:
        entry = found.setdefault(common_name(name), [0, 0])
        entry[0] += count
        entry[1] += ns
    return found


def differences(ours, theirs):
    """[(name, our count, their count)] where they are not equal."""
    counts = {name: (ours.get(name, [0])[0], theirs.get(name, [0])[0])
              for name in sorted(ours.keys() | theirs.keys())}
    return [(name, *both) for name, both in counts.items() if both[0] != both[1]]


def ratios(pairs):
    """{name: the median over the pairs of our summed time over theirs}; "" is all of them."""
    found = collections.defaultdict(list)
    for ours, theirs in pairs:
        total = [sum(ns for _, ns in side.values()) for side in (ours, theirs)]
        if total[1]:
            found[""].append(total[0] / total[1])
        for name in ours.keys() & theirs.keys():
            if theirs[name][1]:
                found[name].append(ours[name][1] / theirs[name][1])
    return {name: statistics.median(values) for name, values in found.items()}


def run_recorder(args):
    """Nothing is told but the machine: the spool has the kernels."""
    library = recorded.recorder()
    from joulediff import _abi

    load = recorded.Workload(args.model, args.device)
    # Switched once beforehand, for both sides measure what follows a warm start.
    library.kernels(_abi.ORDER)
    load.make(WARM_UP)
    library.kernels(_abi.WARMUP)
    recorded.begin_kernels(library, _abi.TRACE)
    load.make(args.steps)
    library.kernels(_abi.WARMUP)
    return recorded.machine(args.device)


def run_profiler(args):
    load = recorded.Workload(args.model, args.device)
    with recorded.profiler(args.device):
        load.make(WARM_UP)
    with recorded.profiler(args.device) as profiler:
        load.make(args.steps)
    events = [(e["name"], 1, round(e["dur"] * 1e3)) for e in recorded.profiled_events(profiler)]
    return {**recorded.machine(args.device), "kernels": summed(events)}


def side(args, which, library):
    """{name: [count, nanoseconds]} of a fresh process, the drops, and the machine."""
    told = ["--model", args.model, "--steps", str(args.steps), "--device", args.device,
            "--side", which]
    with recorded.again(told, library if which == OURS else None, args.folder) as (told, spools):
        if which == THEIRS:
            return told["kernels"], 0, told
        import spool
        from joulediff import _abi

        found = spool.Kernels(spools)
        events = ((name, count, ns) for (_, name), (count, ns) in found.of(_abi.TRACE).items())
        return summed(events), found.dropped, told


def report(args, pairs, dropped, told):
    wrong = [d for ours, theirs in pairs for d in differences(ours, theirs)]
    median, counts = ratios(pairs), [sum(c for c, _ in ours.values()) for ours, _ in pairs]
    print(f"{args.model} on {told['machine']}, torch {told['torch']}: {args.steps} steps, "
          f"{len(pairs)} pairs of processes, {counts[0]:,} kernels, copies and sets each")
    largest = sorted(pairs[0][0].items(), key=lambda item: -item[1][1])[:args.names]
    print(f"{'count':>9}{'time':>12}{'ours/theirs':>13}  name")
    for name, (count, ns) in largest:
        ratio = f"{median[name]:.4f}" if name in median else "-"
        print(f"{count:>9,}{ns / 1e6:>9.3f} ms{ratio:>13}  {name[:100]}")
    for name, ours, theirs in wrong:
        print(f"counts differ: {ours} of ours, {theirs} of theirs: {name[:200]}")
    total = median.get("")
    claims = {"kernels were recorded": all(counts), "none was dropped": dropped == 0,
              "counts are equal, name by name, in every pair": not wrong}
    if total is None:
        claims["torch.profiler saw time on the device"] = False
    else:
        claims[f"the summed time's median ratio {total:.4f} is within {LIMIT:.0%} of 1"] = (
            abs(total - 1) <= LIMIT)
    for claim, holds in claims.items():
        print(f"{'yes' if holds else 'NO':<4}{claim}")
    return {"model": args.model, "machine": told["machine"], "torch": told["torch"],
            "steps": args.steps, "pairs": len(pairs), "kernels": counts, "dropped": dropped,
            "ratio": total, "ratio_by_name": {n: r for n, r in median.items() if n},
            "differences": wrong, "claims": claims}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    recorded.add_arguments(parser)
    parser.add_argument("--model", choices=recorded.MODELS, required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--names", type=int, default=12, help="rows to show (default: 12)")
    parser.add_argument("--side", choices=(OURS, THEIRS), help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.result:
        return recorded.tell(args.result, run_recorder if args.side == OURS else run_profiler, args)
    library, pairs, lost, told = recorded.library(args), [], 0, None
    for n in range(args.pairs):
        found = {}
        for which in ((OURS, THEIRS), (THEIRS, OURS))[n % 2]:
            found[which], dropped, told = side(args, which, library)
            lost += dropped
        pairs.append((found[OURS], found[THEIRS]))
    result = report(args, pairs, lost, told)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1))
    return 0 if all(result["claims"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
