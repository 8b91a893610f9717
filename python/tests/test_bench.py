"""The benchmarks of the recorder, as far as they need no GPU: their statistics, their order of
blocks, and how they read and compare kernels."""

import argparse
import contextlib
import itertools
import math
import os
import pathlib
import random
import struct
import subprocess
import sys

import pytest

import kernel_counts
import kernel_flood
import long_run
import overhead
import paired
import spool
from joulediff import _abi
from paired import OFF, Block


@pytest.mark.parametrize("degrees, t", [(1, 12.7062), (2, 4.3027), (3, 3.1824), (10, 2.2281),
                                        (23, 2.0687), (47, 2.0117)])
def test_students_t(degrees, t):
    assert paired.student(degrees) == pytest.approx(t, abs=1e-4)


def test_the_interval_of_a_mean():
    found = paired.interval([0.01, 0.02, 0.03, 0.04, 0.05])
    assert found.count == 5 and found.mean == pytest.approx(0.03)
    assert found.high - found.mean == pytest.approx(2.77645 * 0.0158114 / 5**0.5, rel=1e-4)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)


@pytest.mark.parametrize("count, rank", [(5, 0), (6, 1), (10, 9), (20, 53), (40, 265)])
def test_ranks_of_wilcoxons_interval(count, rank):
    """The critical values of the two-sided 5 % signed-rank test (each W at most so large rejects)
    as tables of the statistic have them: 0, 8, 52, 264."""
    assert paired._signed_rank(count) == rank


def test_a_block_that_was_disturbed_carries_nothing_off():
    values = [0.01 + 0.001 * math.sin(i) for i in range(40)]
    calm, hit = paired.shift(values), paired.shift(values[:38] + [0.9, 1.3])
    assert calm.mean == pytest.approx(0.01, abs=2e-4)
    assert hit.mean == pytest.approx(calm.mean, abs=2e-4) and hit.high < 0.011
    assert paired.interval(values[:38] + [0.9, 1.3]).high > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_no_arm_has_the_better_place(seed):
    blocks = paired.sequence({"trace": 48, "order": 12}, seed)
    assert len(blocks) == 120 and blocks.count(OFF) == 60
    pairs = list(zip(blocks[::2], blocks[1::2], strict=True))
    for arm, count in (("trace", 48), ("order", 12)):
        assert pairs.count((OFF, arm)) == pairs.count((arm, OFF)) == count // 2
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        assert first == second[::-1]
    assert blocks == paired.sequence({"trace": 48, "order": 12}, seed)
    assert blocks != paired.sequence({"trace": 48, "order": 12}, seed + 1)


def test_an_odd_number_of_pairs_cannot_be_balanced():
    with pytest.raises(ValueError):
        paired.sequence({"trace": 3}, 1)


def test_blocks_that_are_no_pair_are_refused():
    blocks = [Block(arm, 1, 1.0, 1.0) for arm in ("trace", "order")]
    with pytest.raises(ValueError):
        paired.pairs_of(blocks)


class Machine:
    """A clock, and a workload whose steps cost more in some arms, and drift."""

    def __init__(self, extra, drift=0.0):
        self.now, self.arm, self.extra, self.drift = 0.0, OFF, extra, drift
        self.queued = 0.0

    def clock(self):
        return self.now

    def processor(self):
        return 2 * self.now

    def arms(self):
        @contextlib.contextmanager
        def way(arm):
            self.arm = arm
            self.now += 0.25
            yield self.step
            self.arm = OFF
        return {arm: lambda arm=arm: way(arm) for arm in (OFF, *self.extra)}

    def step(self):
        """Takes the host half of what it takes the device."""
        cost = 0.02 * (1 + self.extra.get(self.arm, 0)) * (1 + self.drift * self.now)
        self.now += cost / 2
        self.queued += cost / 2

    def synchronise(self):
        self.now, self.queued = self.now + self.queued, 0.0

    def measured(self, pairs):
        blocks = overhead.measure(paired.sequence(pairs, 3), self.arms(), self.synchronise, 2,
                                  self.clock, self.processor)
        return overhead.summary(blocks)


def test_a_known_overhead_is_found():
    found = Machine({"trace": 0.03, "order": 0.5}).measured({"trace": 4, "order": 2})
    assert found["trace"]["wall"]["mean"] == pytest.approx(0.03)
    assert found["trace"]["cpu"]["mean"] == pytest.approx(0.03)
    assert found["order"]["wall"]["mean"] == pytest.approx(0.5)
    assert found["trace"]["pairs"] == found["trace"]["wall"]["count"] == 4
    assert found["trace"]["switch_seconds"] == pytest.approx(0.25)


def test_drift_is_no_overhead():
    found = Machine({"trace": 0.0}, drift=2e-3).measured({"trace": 12})["trace"]["wall"]
    assert abs(found["mean"]) < 5e-4
    assert found["low"] < 0 < found["high"]


def test_the_interval_covers_the_overhead_of_scattered_steps():
    lot, covered = random.Random(7), 0
    for seed in range(400):
        blocks = [Block(arm, 1, (1.01 if arm == "trace" else 1) * (1 + lot.gauss(0, 0.01)), 1.0)
                  for arm in paired.sequence({"trace": 8}, seed)]
        found = paired.overhead(paired.pairs_of(blocks)["trace"], "wall")
        covered += found.low <= 0.01 <= found.high
    assert 365 <= covered <= 392


def figures(trace_high, profiler=0.05, kernels=7):
    def arm(mean, high):
        return {"wall": {"mean": mean, "high": high}, "kernels": kernels}
    return {"trace": arm(0.01, trace_high), "profiler": arm(profiler, 0.06)}


@pytest.mark.parametrize("found, dropped, holds", [
    (figures(0.02), 0, True), (figures(0.05), 0, False), (figures(0.02, profiler=0.005), 0, False),
    (figures(0.02), 1, False), (figures(0.02, kernels=0), 0, False)])
def test_what_the_overhead_must_hold(found, dropped, holds):
    assert all(held for _, held in overhead.verdict(found, dropped, 0.04)) == holds


def record(kind, payload):
    return struct.pack("<II", len(payload), kind) + payload + b"crc!"


def name(index, text):
    return record(6, struct.pack("<II", index, len(text)) + text.encode())


def write(path, *records, torn=b""):
    path.write_bytes(b"JDSPOOL1" + bytes(8) + b"".join(records) + torn)


def varint(number):
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def batch(*kernels):
    """kernels: (name id, pass, kind, nanoseconds)"""
    shapes, out = [], []
    for name, which, kind, ns in kernels:
        shape = (name, which, 7, 300, 1, 1, 128, 1, 1, 0, kind)
        if shape in shapes:
            out.append(shapes.index(shape))
        else:
            out += [len(shapes), *shape]
            shapes.append(shape)
        out += [2 * 1000, ns, 2]
    return b"".join(map(varint, out))


def test_kernels_are_summed_by_pass_kind_and_name(tmp_path):
    one = record(7, batch((0, 3, 0, 10), (0, 3, 0, 30), (1, 3, 1, 5), (0, 2, 0, 999)))
    write(tmp_path / "1.spool", name(0, "gemm"), name(1, "memcpy HtoD"), one,
          record(10, struct.pack("<Q", 4)), torn=name(2, "gelu")[:-1])
    write(tmp_path / "2.spool", name(0, "memset"), name(1, "gemm"),
          record(7, batch((1, 3, 0, 2))), record(7, batch((0, 3, 2, 1))))
    found = spool.Kernels(tmp_path)
    assert found.of(3) == {(spool.KERNEL, "gemm"): (3, 42), (spool.COPY, "memcpy HtoD"): (1, 5),
                           (spool.SET, "memset"): (1, 1)}
    assert found.of(2) == {(spool.KERNEL, "gemm"): (1, 999)}
    assert found.of(4) == {} and found.dropped == 4


RECORD = """
    import ctypes, os
    from joulediff import _abi

    class Launch(ctypes.Structure):
        _fields_ = [("kind", ctypes.c_int), ("name", ctypes.c_char_p), ("start", ctypes.c_uint64),
                    ("end", ctypes.c_uint64), ("stream", ctypes.c_uint32),
                    ("grid", ctypes.c_uint32), ("block", ctypes.c_uint32),
                    ("copy_kind", ctypes.c_uint8), ("bytes", ctypes.c_uint64)]

    fake = ctypes.CDLL(os.environ["JOULEDIFF_CUPTI"])
    recorder = _abi.load()
    assert recorder.kernels(_abi.TRACE) == 1
    for i in range(5000):
        launch = Launch(10, b"_Z4gemmPf" if i % 3 else b"_Z4geluPf", 10_000 + 100 * i,
                        10_000 + 100 * i + 50 + i % 3, 7, 1 + i % 5, 128, 0, 0)
        fake.fake_cupti_call(ctypes.byref(launch))
    fake.fake_cupti_call(ctypes.byref(Launch(1, None, 900_000, 900_300, 7, 0, 0, 1, 1 << 33)))
    fake.fake_cupti_drop(ctypes.c_size_t(3))
    recorder.kernels(_abi.WARMUP)
"""


def test_the_reader_understands_the_recorder(tmp_path):
    from test_recording import library, run

    fake = pathlib.Path(library()).parent / "fakes" / "libcupti.so.13"
    if not fake.exists():
        pytest.skip("the fake libcupti is not built")
    run(tmp_path / "a", RECORD, inject=False, JOULEDIFF_CUPTI=str(fake))
    found = spool.Kernels(tmp_path / "a" / "spools")
    assert found.of(_abi.TRACE) == {(0, "gelu(float*)"): (1667, 1667 * 50),
                                    (0, "gemm(float*)"): (3333, 1667 * 51 + 1666 * 52),
                                    (1, "memcpy HtoD"): (1, 300)}
    assert found.dropped == 3


def test_both_sides_spell_a_name_alike():
    common = kernel_counts.common_name
    assert common("Memcpy HtoD (Pageable -> Device)") == "memcpy HtoD"
    assert common("Memset (Device)") == "memset" == common("memset")
    assert common("_Z4gemmPf") == "gemm(float*)" == common("gemm(float*)")
    assert common("_Znonsense") == "_Znonsense" and common("ampere_sgemm_32x32") != ""


def test_a_difference_of_counts_is_told():
    ours = kernel_counts.summed([("_Z4gemmPf", 3, 30), ("gelu", 1, 5), ("memset", 2, 4)])
    theirs = kernel_counts.summed([("gemm(float*)", 1, 10)] * 3 + [("Memset (Device)", 1, 2)])
    assert kernel_counts.differences(ours, theirs) == [("gelu", 1, 0), ("memset", 2, 1)]
    assert kernel_counts.differences(ours, ours) == []


def test_ratios_are_medians_over_the_pairs():
    def side(gemm, gelu):
        return {"gemm": [1, gemm], "gelu": [1, gelu]}
    pairs = [(side(100, 50), side(100, 100)), (side(120, 60), side(100, 100)),
             (side(900, 55), side(100, 100))]
    found = kernel_counts.ratios(pairs)
    assert found["gemm"] == pytest.approx(1.2) and found["gelu"] == pytest.approx(0.55)
    assert found[""] == pytest.approx(0.9)
    assert kernel_counts.ratios([(side(1, 1), {})]) == {}


@pytest.mark.parametrize("at_once, cost, expected", [(1, 1e-6, 1.0), (100, 1e-3, 1.0),
                                                     (1, 4e-4, 0.5)])
def test_the_flood_holds_its_rate_as_long_as_it_can(at_once, cost, expected):
    now, calls, ticks = [0.0], itertools.count(), []

    def launch():
        next(calls)
        now[0] += cost

    def sleep(seconds):
        now[0] += seconds + 1e-5
    launched = kernel_flood.flood(launch, at_once, 5000, 4, lambda: ticks.append(now[0]),
                                  lambda: now[0], sleep)
    assert launched == next(calls) * at_once
    assert launched == pytest.approx(5000 * 4 * expected, rel=0.01)
    assert [round(t, 1) for t in ticks] == [0, 1, 2, 3]


@pytest.mark.parametrize("fault, holds", [
    ({}, True), ({"count": 8999}, False), ({"dropped": 1}, False), ({"seconds": 4.0}, False),
    ({"memory": [100, 100, 150]}, False), ({"memory": [100, 150, 151]}, True)])
def test_what_the_flood_must_hold(fault, holds):
    told = {"launched": 9000, "seconds": fault.get("seconds", 3.0), "processor_seconds": 1.0,
            "resident_bytes": [m << 20 for m in fault.get("memory", [100, 101, 101])]}
    kernels = {(0, "add"): (fault.get("count", 9000), 5), (0, "fill"): (2, 1)}
    args = argparse.Namespace(rate=3000, growth=16)
    found = kernel_flood.judged(told, kernels, fault.get("dropped", 0), args)
    assert all(found["claims"].values()) == holds
    assert found["others"] == 2


def test_without_the_recorder_the_scripts_say_what_to_do():
    script = pathlib.Path(kernel_flood.__file__)
    env = {k: v for k, v in os.environ.items() if not k.startswith("JOULEDIFF_")}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and "give --library" in done.stderr


@pytest.mark.parametrize("growth, made, dropped, holds", [
    (0, 400, 0, True), (20, 400, 0, False), (0, 401, 0, False), (0, 400, 1, False)])
def test_a_long_run_holds_what_it_says(capsys, growth, made, dropped, holds):
    args = argparse.Namespace(minutes=1, warm=0, growth=4)
    found = {"steps": 10, "kernels": 400, "readings": 90, "bytes": 1000, "dropped": dropped}
    memory = {"launcher": [(at, 6 + growth * at / 300) for at in range(300)],
              "program": [(at, 20.0) for at in range(300)]}
    energy = {"joules": 1.0, "meter": "m", "seconds": 0.1}
    told = {"steps": 10, "kernels": made}
    assert long_run.judge(args, told, found, memory, energy, "") is holds
    assert ("NO" in capsys.readouterr().out) is not holds
