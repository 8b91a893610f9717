#!/usr/bin/env python3
"""Many small kernels for minutes: is any lost, and what does the recorder hold? See README.md.

    python bench/kernel_flood.py --library build/recorder/lib/libjoulediff-record.so
"""

import argparse
import json
import os
import pathlib
import sys
import time

import recorded

GRAPH_KERNELS = 1000
VARIANTS = ("graph", "eager")


def flood(launch, at_once, rate, seconds, each_second, clock=time.perf_counter, sleep=time.sleep):
    """Calls launch(), which launches `at_once` kernels, so often that `rate` kernels a second are
    due; what it is late it makes up for. The number of kernels launched."""
    begin, launched, told = clock(), 0, 0
    while (now := clock() - begin) < seconds:
        if now >= told:
            each_second()
            told += 1
        if launched + at_once <= now * rate:
            launch()
            launched += at_once
        else:
            sleep(max(0.0, min((launched + at_once) / rate, seconds) - now))
    return launched


def resident_bytes():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def make_launch(torch, variant, device):
    """(launch, kernels of one launch); the kernel adds 1 to one number, and runs nowhere else."""
    numbers = torch.zeros(1, device=device)

    def eager():
        numbers.add_(1)
    if variant == "eager" or device == "cpu":
        return eager, 1
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        eager()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(GRAPH_KERNELS):
            eager()
    return graph.replay, GRAPH_KERNELS


def run(args):
    """The flood, in the recorded process. Kernels of the order pass are its warm-up, and the graph is
    made under it: a graph has its kernels in the trace only if they were recorded when it was made."""
    import torch

    from joulediff import _abi

    library = recorded.recorder()
    synchronise = recorded.synchronise_of(torch, args.device)
    torch.zeros(1, device=args.device)
    recorded.begin_kernels(library, _abi.ORDER)
    launch, at_once = make_launch(torch, args.variant, args.device)
    launch()
    synchronise()
    library.kernels(_abi.TRACE)
    memory = []
    begin, processor = time.perf_counter(), time.process_time()
    launched = flood(launch, at_once, args.rate, args.seconds,
                     lambda: memory.append(resident_bytes()))
    synchronise()
    seconds = time.perf_counter() - begin
    memory.append(resident_bytes())
    library.kernels(_abi.WARMUP)
    return {**recorded.machine(args.device), "launched": launched, "seconds": seconds,
            "resident_bytes": memory, "processor_seconds": time.process_time() - processor}


def judged(told, kernels, dropped, args):
    """The figures. kernels: {(kind, name): (count, ns)} of the trace; the flood's is the one that
    ran most, beside it run a graph's own few sets and fills."""
    counts = sorted((count for count, _ in kernels.values()), reverse=True) or [0]
    memory, rate = told["resident_bytes"], told["launched"] / told["seconds"]
    mebibytes = [m / 2**20 for m in memory]
    middle = mebibytes[len(mebibytes) // 2]
    grown = mebibytes[-1] - middle
    claims = {
        "every kernel launched is in the spool": counts[0] == told["launched"] > 0,
        "none was dropped": dropped == 0,
        f"the rate {rate:,.0f} a second is at least 99 % of {args.rate:,}": rate >= 0.99 * args.rate,
        f"the second half grew the process by {grown:.1f} MiB, at most {args.growth:g}":
            grown <= args.growth,
    }
    return {"launched": told["launched"], "recorded": counts[0], "others": sum(counts[1:]),
            "dropped": dropped, "seconds": told["seconds"], "rate": rate,
            "processor_seconds": told["processor_seconds"],
            "resident_mebibytes": {"begin": mebibytes[0], "middle": middle, "end": mebibytes[-1],
                                   "most": max(mebibytes)}, "claims": claims}


def measure(args, variant, library):
    import spool
    from joulediff import _abi

    told = ["--seconds", str(args.seconds), "--rate", str(args.rate), "--device", args.device,
            "--variant", variant]
    with recorded.again(told, library, args.folder) as (told, spools):
        found = spool.Kernels(spools)
        result = judged(told, found.of(_abi.TRACE), found.dropped, args)
        size = sum(path.stat().st_size for path in spools.iterdir())
        return {"variant": variant, "machine": told["machine"], "torch": told["torch"], **result,
                "spool_bytes": size}


def show(result):
    memory = result["resident_mebibytes"]
    kernels = max(1, result["recorded"])
    print(f"{result['variant']} on {result['machine']}, torch {result['torch']}: "
          f"{result['seconds']:.1f} s, {result['rate']:,.0f} kernels a second")
    print(f"    launched {result['launched']:,}  recorded {result['recorded']:,}  dropped "
          f"{result['dropped']:,}  others {result['others']:,}")
    print(f"    resident {memory['begin']:.1f} MiB at the begin, {memory['middle']:.1f} in the "
          f"middle, {memory['end']:.1f} at the end, {memory['most']:.1f} at most")
    print(f"    spool {result['spool_bytes'] / 2**20:.1f} MiB, "
          f"{result['spool_bytes'] / kernels:.1f} bytes a kernel; processor "
          f"{result['processor_seconds']:.1f} s in all")
    for claim, holds in result["claims"].items():
        print(f"{'yes' if holds else 'NO':<4}{claim}")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    recorded.add_arguments(parser)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--rate", type=int, default=50_000, help="kernels a second")
    parser.add_argument("--variant", choices=VARIANTS, help="default: one after the other")
    parser.add_argument("--growth", type=float, default=16, help="MiB that the process may grow by "
                        "in the second half (default: 16)")
    parser.add_argument("--result", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.result:
        return recorded.tell(args.result, run, args)
    library, results = recorded.library(args), []
    for variant in [args.variant] if args.variant else VARIANTS:
        results.append(measure(args, variant, library))
        show(results[-1])
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1))
    return 0 if all(all(r["claims"].values()) for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
