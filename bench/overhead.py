#!/usr/bin/env python3
"""What recording costs a program: see README.md.

    python bench/overhead.py --model gpt2 --library build/recorder/lib/libjoulediff-record.so
"""

import argparse
import contextlib
import gc
import itertools
import json
import pathlib
import random
import sys
import time

import paired
import recorded
from paired import OFF

LIMITS = {"vit": 0.01, "gpt2": 0.04}  # of the trace: the upper end of its interval
PROGRESS = 16  # blocks
ROUND_REPEATS = 3                     # blocks of one process, where each arm has its own


class Recorder:
    """The passes of the recorder around a workload."""

    def __init__(self, step):
        from joulediff import _abi, _order

        self.library, self._abi, self._step = recorded.recorder(), _abi, step
        self._order = _order.Order(self.library, self._failed)
        self._index = itertools.count()

    @contextlib.contextmanager
    def trace(self):
        with self._kernels(self._abi.TRACE):
            def step():
                begin = self.library.now()
                self._step()
                self._end(self._abi.TRACE, begin)
            yield step

    @contextlib.contextmanager
    def order(self):
        with self._kernels(self._abi.ORDER):
            def step():
                begin = self.library.now()
                self._order.begin_step(next(self._index), True)
                self._step()
                self._order.end()
                self._end(self._abi.ORDER, begin)
            yield step

    @contextlib.contextmanager
    def _kernels(self, which):
        recorded.begin_kernels(self.library, which)
        yield
        self.library.kernels(self._abi.WARMUP)

    def _end(self, which, begin):
        self.library.step(which, next(self._index), begin, self.library.now(), None)

    @staticmethod
    def _failed(error):
        raise error


class Profiler:
    """torch.profiler around a workload, and how many kernels, copies and sets it saw."""

    def __init__(self, step, device):
        self._step, self._device, self.seen = step, device, 0

    @contextlib.contextmanager
    def profile(self):
        from torch.autograd import DeviceType

        with recorded.profiler(self._device) as profiler:
            yield self._step
        self.seen += sum(event.device_type() == DeviceType.CUDA
                         for event in profiler.profiler.kineto_results.events())


def off(step):
    return lambda: contextlib.nullcontext(step)


def measure(sequence, arms, synchronise, seconds, clock=time.perf_counter, cpu=time.process_time,
            blocks=None):
    """A Block for each arm of the sequence. arms: {name: () -> context manager of a step}. `blocks`:
    the list to add them to as they come."""
    blocks = [] if blocks is None else blocks
    for number, arm in enumerate(sequence):
        if number % PROGRESS == PROGRESS - 1:
            print(f"block {number + 1} of {len(sequence)}", file=sys.stderr, flush=True)
        gc.collect()
        begin = clock()
        with arms[arm]() as step:
            gc.disable()
            block = paired.block(arm, step, synchronise, seconds, clock, cpu)
            gc.enable()
        switch = clock() - begin - block.wall
        blocks.append(paired.Block(arm, block.steps, block.wall, block.cpu, switch))
    return blocks


def in_one_process(args):
    """All blocks; the profiler's come last, when the recorder has let go of CUPTI for good."""
    load = recorded.Workload(args.model, args.device)
    recorder, profiler = Recorder(load.step), Profiler(load.step, args.device)
    arms = {OFF: off(load.step), "trace": recorder.trace, "order": recorder.order}
    warm_up = ("trace", "order", OFF, "trace", OFF)
    unmeasured = measure(warm_up, arms, load.synchronise, args.seconds)
    pairs = {"trace": args.blocks, "order": even(args.blocks // 10)}
    blocks, refused = [], None
    try:
        measure(paired.sequence(pairs, args.seed), arms, load.synchronise, args.seconds,
                blocks=blocks)
        arms = {OFF: arms[OFF], "profiler": profiler.profile}
        refused = unfit(profiler, arms, load, args.seconds)
        if refused is None:
            measure(paired.sequence({"profiler": even(args.blocks // 5)}, args.seed), arms,
                    load.synchronise, args.seconds, blocks=blocks)
    except KeyboardInterrupt:
        del blocks[len(blocks) // 2 * 2:]
        print(f"interrupted after {len(blocks)} blocks", file=sys.stderr, flush=True)
    return {**recorded.machine(args.device), "profiler_refused": refused, "profiler_seen": profiler.seen,
            "unmeasured": rows(unmeasured), "blocks": rows(blocks)}


def unfit(profiler, arms, load, seconds):
    """Why torch.profiler cannot follow in this process; None: it can, and is warm."""
    try:
        measure(("profiler", "profiler", OFF), arms, load.synchronise, seconds)
    except RuntimeError as error:
        return str(error)
    if profiler.seen == 0:
        return "it saw no kernels"
    profiler.seen = 0
    return None


def one_arm(args):
    """Some blocks of one arm, in a process that never had another."""
    load = recorded.Workload(args.model, args.device)
    arms, profiler = {OFF: off(load.step)}, Profiler(load.step, args.device)
    if args.arm == "trace":
        arms["trace"] = Recorder(load.step).trace
    arms["profiler"] = profiler.profile
    measure((args.arm,), arms, load.synchronise, args.seconds)
    blocks = measure((args.arm,) * ROUND_REPEATS, arms, load.synchronise, args.seconds)
    total = paired.Block(args.arm, sum(b.steps for b in blocks), sum(b.wall for b in blocks),
                         sum(b.cpu for b in blocks),
                         sum(b.switch for b in blocks) / len(blocks))
    return {**recorded.machine(args.device), "profiler_seen": profiler.seen, "blocks": rows([total])}


def rows(blocks):
    return [[b.arm, b.steps, b.wall, b.cpu, b.switch] for b in blocks]


def blocks_of(told):
    return [paired.Block(*row) for row in told["blocks"]]


def even(count):
    return max(2, count + count % 2)


def kernels_in(folder):
    """{arm: kernels, copies and sets recorded}, and how many were dropped."""
    import spool
    from joulediff import _abi

    found = spool.Kernels(folder)
    return {arm: sum(count for count, _ in found.of(which).values())
            for arm, which in (("trace", _abi.TRACE), ("order", _abi.ORDER))}, found.dropped


def summary(blocks):
    """{arm: figures} of blocks in the order of sequence()."""
    found = {}
    for arm, pairs in paired.pairs_of(blocks).items():
        others = [other for _, other in pairs]
        found[arm] = {
            "pairs": len(pairs), "steps": sum(b.steps for b in others),
            "wall": vars(paired.overhead(pairs, "wall")),
            "cpu": vars(paired.overhead(pairs, "cpu")),
            "switch_seconds": sum(b.switch for b in others) / len(others),
        }
    return found


def together(args, library):
    """Everything in one process."""
    with recorded.again(child(args), library, args.folder) as (told, spools):
        recorded_kernels, dropped = kernels_in(spools)
    blocks = blocks_of(told)
    figures = summary(blocks)
    for arm, count in recorded_kernels.items():
        steps = sum(row[1] for row in told["unmeasured"] if row[0] == arm)
        figures[arm] |= {"kernels": count,
                         "kernels_per_step": count / (steps + figures[arm]["steps"])}
    if "profiler" in figures:
        seen = told["profiler_seen"]
        figures["profiler"] |= {"kernels": seen,
                                "kernels_per_step": seen / figures["profiler"]["steps"]}
    return told, blocks, figures, dropped


def apart(args, library):
    """Each arm in processes of its own, in turns; pairs are those of the same turn."""
    lot, blocks, told, dropped = random.Random(args.seed), [], {}, 0
    kernels = {"trace": 0, "profiler": 0}
    for _ in range(args.rounds):
        turn = {}
        for arm in lot.sample((OFF, "trace", "profiler"), 3):
            with recorded.again(child(args, arm), library if arm == "trace" else None,
                                args.folder) as (told, spools):
                [turn[arm]] = blocks_of(told)
                if arm == "trace":
                    found, lost = kernels_in(spools)
                    kernels["trace"] += found["trace"]
                    dropped += lost
                kernels["profiler"] += told["profiler_seen"]
        blocks += [turn[OFF], turn["trace"], turn[OFF], turn["profiler"]]
    figures = summary(blocks)
    for arm, count in kernels.items():
        figures[arm]["kernels"] = count
    return told, blocks, figures, dropped


def child(args, arm=None):
    told = ["--model", args.model, "--seconds", str(args.seconds), "--blocks", str(args.blocks),
            "--seed", str(args.seed), "--device", args.device]
    return told + (["--arm", arm] if arm else [])


def verdict(figures, dropped, limit=None):
    """[(what must hold, whether it does)]"""
    trace = figures["trace"]
    claims = [("kernels were recorded", trace["kernels"] > 0), ("none was dropped", dropped == 0)]
    if limit is not None:
        claims.append((f"trace: the interval's upper end {trace['wall']['high']:+.2%} is at most "
                       f"{limit:.0%}", trace["wall"]["high"] <= limit))
    if "profiler" in figures:
        profiler = figures["profiler"]["wall"]["mean"]
        claims.append(("torch.profiler saw kernels", figures["profiler"]["kernels"] > 0))
        claims.append((f"trace {trace['wall']['mean']:+.2%} is below torch.profiler {profiler:+.2%}",
                       trace["wall"]["mean"] < profiler))
    return claims


def table(figures):
    yield (f"{'arm':<9}{'pairs':>6}{'time a step':>13}{'95 % interval':>20}{'processor':>11}"
           f"{'95 % interval':>20}{'kernels':>11}{'a step':>9}{'switch':>9}")
    for arm, f in figures.items():
        wall, cpu = f["wall"], f["cpu"]
        a_step = f"{f['kernels_per_step']:.2f}" if "kernels_per_step" in f else ""
        yield (f"{arm:<9}{f['pairs']:>6}{wall['mean']:>+13.2%}{between(wall):>20}"
               f"{cpu['mean']:>+11.2%}{between(cpu):>20}{f['kernels']:>11,}{a_step:>9}"
               f"{f['switch_seconds'] * 1e3:>6.0f} ms")


def between(estimate):
    return f"{estimate['low']:+.2%} to {estimate['high']:+.2%}"


def report(args, found, way, limit=None):
    told, blocks, figures, dropped = found
    plain = [b for b in blocks if b.arm == OFF]
    step = sum(b.wall for b in plain) / sum(b.steps for b in plain)
    print(f"{args.model} on {told['machine']}, torch {told['torch']}: {step * 1e3:.3f} ms a step "
          f"when off; {way}, blocks of {args.seconds:g} s")
    print("\n".join(table(figures)))
    claims = verdict(figures, dropped, limit)
    for claim, holds in claims:
        print(f"{'yes' if holds else 'NO':<4}{claim}")
    print(flush=True)
    return {"way": way, "model": args.model, "machine": told["machine"], "torch": told["torch"],
            "block_seconds": args.seconds, "off_step_seconds": step, "arms": figures,
            "dropped": dropped, "claims": dict(claims), "blocks": rows(blocks)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    recorded.add_arguments(parser)
    parser.add_argument("--model", choices=recorded.MODELS, required=True)
    parser.add_argument("--blocks", type=int, default=48, help="of the trace (default: 48); as many "
                        "without, a tenth for the order pass, a fifth for torch.profiler")
    parser.add_argument("--seconds", type=float, default=2, help="of a block (default: 2)")
    parser.add_argument("--rounds", type=int, default=6, help="of separate processes (default: 6)")
    parser.add_argument("--separate", action="store_true", help="separate processes alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arm", choices=(OFF, "trace", "profiler"), help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.blocks = even(args.blocks)
    if args.result:
        return recorded.tell(args.result, one_arm if args.arm else in_one_process, args)
    if args.rounds < 2:
        parser.error("--rounds is at least 2: an interval needs two values")
    library, reports = recorded.library(args), []
    refused = None
    if not args.separate:
        found = together(args, library)
        reports.append(report(args, found, "in one process", LIMITS.get(args.model)))
        refused = found[0]["profiler_refused"]
        if refused:
            print(f"torch.profiler cannot be compared in that process: {refused}")
    if args.separate or refused:
        reports.append(report(args, apart(args, library), "in separate processes"))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(reports, indent=1))
    return 0 if all(all(r["claims"].values()) for r in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
