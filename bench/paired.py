"""Comparing ways of running one workload where the machine drifts: neighbours in time are compared,
in an order that gives neither side the better place."""

import math
import random
import statistics
import time
from dataclasses import dataclass

OFF = "off"


@dataclass(frozen=True)
class Block:
    """Steps made back to back in one way; wall and cpu (of all threads) in seconds."""

    arm: str
    steps: int
    wall: float
    cpu: float
    switch: float = 0.0  # seconds to begin and to end this way, outside of `wall`


@dataclass(frozen=True)
class Estimate:
    """A mean, or the pseudomedian in its place, and its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int


def sequence(pairs, seed):
    """The arms of all blocks in order. pairs: {arm: even number of pairs}.

    Blocks 2k and 2k + 1 are a pair: the arm and `off` in either order. Pairs come two by two, one
    the mirror of the other (off arm arm off, or arm off off arm), so that a steady drift cancels;
    whose turn it is and how it begins are drawn by lot.
    """
    if any(count < 2 or count % 2 for count in pairs.values()):
        raise ValueError(f"the number of pairs of an arm is even and at least 2: {pairs}")
    lot = random.Random(seed)
    turns = [arm for arm, count in pairs.items() for _ in range(count // 2)]
    lot.shuffle(turns)
    blocks = []
    for arm in turns:
        first, second = lot.sample((OFF, arm), 2)
        blocks += [first, second, second, first]
    return blocks


def block(arm, step, synchronise, seconds, clock=time.perf_counter, cpu=time.process_time):
    """Steps for that long, and what is left of them on the device."""
    synchronise()
    begin, cpu_begin, steps = clock(), cpu(), 0
    while clock() - begin < seconds:
        step()
        steps += 1
    synchronise()
    return Block(arm, steps, clock() - begin, cpu() - cpu_begin)


def pairs_of(blocks):
    """{arm: [(off, arm), ...]} of blocks measured in the order of sequence()."""
    found = {}
    for pair in zip(blocks[::2], blocks[1::2], strict=True):
        off, other = sorted(pair, key=lambda b: b.arm != OFF)
        if off.arm != OFF or other.arm == OFF:
            raise ValueError(f"not a pair: {pair}")
        found.setdefault(other.arm, []).append((off, other))
    return found


def overhead(pairs, cost):
    """By how much the arm's steps cost more; cost: a Block's attribute. A fraction of off's."""
    return shift([(getattr(arm, cost) / arm.steps) / (getattr(off, cost) / off.steps) - 1
                  for off, arm in pairs])


def shift(values):
    """Where independent differences lie: Hodges and Lehmann's estimate (the median of the means of
    all pairs of values) with the interval of Wilcoxon's signed ranks. Some blocks are hit by what
    else runs on the machine, and of a mean such a block takes hold."""
    means = sorted((x + y) / 2 for i, x in enumerate(values) for y in values[i:])
    rank = _signed_rank(len(values))
    if rank == 0:  # too few for this interval
        return interval(values)
    return Estimate(statistics.median(means), means[rank - 1], means[-rank], len(values))


def _signed_rank(count, level=0.95):
    """The largest rank k with P(W < k) <= (1 - level) / 2, W the signed-rank statistic of `count`."""
    ways = [1]  # by the sum: subsets of the ranks 1 to n
    for n in range(1, count + 1):
        ways = [(ways[s] if s < len(ways) else 0) + (ways[s - n] if s >= n else 0)
                for s in range(len(ways) + n)]
    most, below, k = (1 - level) / 2 * 2**count, 0, 0
    while below + ways[k] <= most:
        below += ways[k]
        k += 1
    return k


def interval(values):
    """Of independent values, by Student's t."""
    mean = statistics.fmean(values)
    half = student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half, len(values))


def student(degrees, level=0.95):
    """The t that a share `level` of Student's distribution lies within, on both sides of 0."""
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def _within(t, degrees):
    """The share between -t and t: a finite sum for whole degrees of freedom."""
    angle = math.atan2(t, math.sqrt(degrees))
    odd = degrees % 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for k in range(2 + odd, degrees + 1, 2):
        total += term
        term *= (k - 1) / k * math.cos(angle) ** 2
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
