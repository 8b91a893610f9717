#!/usr/bin/env python3
"""What CUPTI itself costs a program, kind of record by kind: see README.md.

    g++ -O2 -std=c++20 -shared -fPIC -Isrc bench/cupti_cost.cpp -o libcupti_cost.so -ldl
    python bench/cupti_cost.py --model vit --cost libcupti_cost.so
"""

import argparse
import contextlib
import ctypes
import json
import pathlib
import sys

import overhead
import paired
import recorded

KERNEL, CONCURRENT_KERNEL, DRIVER, RUNTIME = 3, 10, 4, 5
SET, COPIES = 2, (1, 22)
WAYS = {
    "concurrent": (CONCURRENT_KERNEL,),
    "with copies": (CONCURRENT_KERNEL, *COPIES),
    "with sets": (CONCURRENT_KERNEL, *COPIES, SET),
    "serialised": (KERNEL,),
    "with calls": (CONCURRENT_KERNEL, RUNTIME, DRIVER),
    "with callbacks": (CONCURRENT_KERNEL,),
}


class Cupti:
    """Records of some kinds into buffers that nobody reads."""

    def __init__(self, path, own_clock, pinned):
        self._library = ctypes.CDLL(path)
        self._library.cost_flush.restype = ctypes.c_uint64
        if pinned:
            self._check(self._library.cost_pinned(1))
        self._check(self._library.cost_start(own_clock))
        self.bytes = {}

    def way(self, name, step):
        @contextlib.contextmanager
        def on():
            if name == "with callbacks":
                self._check(self._library.cost_callbacks(1))
            for kind in WAYS[name]:
                self._check(self._library.cost_switch(kind, 1))
            yield step
            for kind in WAYS[name]:
                self._check(self._library.cost_switch(kind, 0))
            if name == "with callbacks":
                self._check(self._library.cost_callbacks(0))
            self.bytes[name] = self.bytes.get(name, 0) + self._library.cost_flush()
        return on

    def leave(self, own_clock):
        self._check(self._library.cost_leave())
        self._check(self._library.cost_start(own_clock))

    @staticmethod
    def _check(result):
        if result != 0:
            sys.exit(f"{sys.argv[0]}: libcupti answers {result}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cost", required=True, help="libcupti_cost.so")
    parser.add_argument("--model", choices=recorded.MODELS, required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda",))
    parser.add_argument("--ways", default=",".join(WAYS), help="some of: " + ", ".join(WAYS))
    parser.add_argument("--own-clock", action="store_true",
                        help="stamps by a callback of ours, as the recorder asks for")
    parser.add_argument("--first", choices=WAYS, help="one block of this before all others: does it "
                        "leave anything behind?")
    parser.add_argument("--leave", action="store_true",
                        help="CUPTI leaves the process (cuptiFinalize) after that first block")
    parser.add_argument("--pinned", action="store_true",
                        help="CUPTI keeps times in memory of the host, not on the device")
    parser.add_argument("--blocks", type=int, default=10, help="of each way (default: 10)")
    parser.add_argument("--seconds", type=float, default=1, help="of a block (default: 1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write the figures to this file, too")
    args = parser.parse_args()
    import torch  # noqa: F401  brings libcupti, which is to be asked before CUDA comes up
    cupti = Cupti(args.cost, args.own_clock, args.pinned)
    load = recorded.Workload(args.model, args.device)
    load.make(20)
    arms = {paired.OFF: overhead.off(load.step)}
    arms |= {name: cupti.way(name, load.step) for name in args.ways.split(",")}
    if args.first:
        overhead.measure((args.first,), {args.first: cupti.way(args.first, load.step)},
                         load.synchronise, args.seconds)
        if args.leave:
            cupti.leave(args.own_clock)
    overhead.measure(arms, arms, load.synchronise, args.seconds)
    cupti.bytes.clear()
    pairs = {name: overhead.even(args.blocks) for name in arms if name != paired.OFF}
    blocks = overhead.measure(paired.sequence(pairs, args.seed), arms, load.synchronise, args.seconds)
    plain = [b for b in blocks if b.arm == paired.OFF]
    step = sum(b.wall for b in plain) / sum(b.steps for b in plain)
    print(f"{args.model}: {step * 1e3:.3f} ms a step when off"
          + ("; own clock" if args.own_clock else ""))
    figures = overhead.summary(blocks)
    for name, f in figures.items():
        f["bytes_per_step"] = cupti.bytes[name] / f["steps"]
        print(f"{name:<12}{f['pairs']:>4} pairs {f['wall']['mean']:>+8.2%} "
              f"[{f['wall']['low']:+.2%}, {f['wall']['high']:+.2%}]  cpu {f['cpu']['mean']:+.2%}  "
              f"{f['bytes_per_step']:,.0f} B a step", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(
            {"model": args.model, "own_clock": args.own_clock, "off_step_seconds": step,
             "ways": figures}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
