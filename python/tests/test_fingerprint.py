"""torch's fingerprints against the vectors that every producer reproduces."""

import ctypes
import json
import math
import pathlib
import struct

import pytest
import torch

from joulediff import _abi, _fingerprint

GOLDEN = pathlib.Path(__file__).parents[2] / "tests/golden/fingerprints.json"
CASES = json.loads(GOLDEN.read_text())["cases"]
DTYPES = {
    "float32": torch.float32, "float64": torch.float64, "float16": torch.float16,
    "bfloat16": torch.bfloat16, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32,
    "int64": torch.int64, "uint8": torch.uint8, "boolean": torch.bool,
    "complex64": torch.complex64, "complex128": torch.complex128,
    "float8_e4m3": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2,
}


def build(case):
    """The case's tensor, by the generator that tools/fingerprint_vectors.py explains."""
    dtype = DTYPES[case["dtype"]]
    parts = 2 if dtype.is_complex else 1
    size = dtype.itemsize // parts
    keep, force, x = int(case["and"], 16), int(case["or"], 16), case["seed"]
    words = []
    for _ in range(math.prod(case["shape"]) * parts):
        x = (1664525 * x + 1013904223) & 0xFFFFFFFF
        bits = x >> (32 - 8 * min(size, 4))
        if size == 8:
            x = (1664525 * x + 1013904223) & 0xFFFFFFFF
            bits |= x << 32
        words.append((bits & keep) | force)
    for index, bits in case["set"]:
        words[index] = int(bits, 16)
    data = bytearray(b"".join(w.to_bytes(size, "little") for w in words))
    if not data:
        return torch.empty(case["shape"], dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(case["shape"])


def assert_same(got, want):
    for field in ("count", "nan", "positive_infinity", "negative_infinity", "distinct"):
        assert getattr(got, field) == want[field], field
    for field in ("own", "bf16", "fp16"):
        assert list(getattr(got, field)) == want[field], field
    for field in ("mean", "mean_abs", "rms", "l4", "min", "max"):
        assert getattr(got, field) == pytest.approx(want[field], rel=1e-9, abs=1e-5 * want["rms"])
    assert got.m3 == pytest.approx(want["m3"], rel=1e-9, abs=1e-5 * want["l4"] ** 3)


def bits_of(values):
    return ["7fc00000" if math.isnan(v) else f"{struct.unpack('<I', struct.pack('<f', v))[0]:08x}"
            for v in values]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vectors(case, monkeypatch):
    tensor = build(case)
    want = case["expected"]
    got = _fingerprint.fingerprint(tensor)
    assert got.dtype == case["code"]
    assert_same(got, want)
    assert bits_of(_fingerprint.sample(tensor) or []) == want["sample"]
    monkeypatch.setitem(_fingerprint._CHUNK, "cpu", 7)
    assert_same(_fingerprint.fingerprint(tensor), want)


class Library:
    """The built recorder's reading of memory."""

    def __init__(self):
        path = pathlib.Path(__file__).parents[2] / "build/release/lib/libjoulediff-record.so"
        if not path.exists():
            pytest.skip("the recorder is not built")
        self.fingerprint_of = ctypes.CDLL(str(path)).jd_fingerprint_of
        self.fingerprint_of.restype = None
        self.fingerprint_of.argtypes = [ctypes.POINTER(_abi.Fingerprint), ctypes.c_void_p, ctypes.c_uint64]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_recorder_reads_what_torch_reads(case):
    tensor, library = build(case), Library()
    got = _fingerprint.fingerprint(tensor, library)
    assert got.dtype == case["code"]
    assert_same(got, case["expected"])
    if tensor.dim() > 1:
        gaps = torch.empty((*tensor.shape[:-1], tensor.shape[-1] + 3), dtype=tensor.dtype)[..., 1:-2].copy_(tensor)
        for other in (tensor.transpose(0, -1), gaps):
            assert_same(_fingerprint.fingerprint(other, library), case["expected"])


def test_much_memory_is_read_on_several_threads():
    tensor = torch.randn(1 << 21, generator=torch.Generator().manual_seed(1))
    tensor[12345], tensor[-1] = math.nan, -math.inf
    want, got = _fingerprint.fingerprint(tensor), _fingerprint.fingerprint(tensor, Library())
    assert_same(got, {name: list(value) if name in ("own", "bf16", "fp16") else value
                      for name, value in ((n, getattr(want, n)) for n, _ in want._fields_)})


def test_layout_does_not_matter():
    base = torch.randn(6, 5, 8)
    want = bytes(_fingerprint.fingerprint(base))
    for other in (base.transpose(0, 2), base.permute(1, 2, 0).contiguous().permute(2, 0, 1),
                  base[:, None].expand(6, 3, 5, 8), torch.randn(12, 5, 9)[::2, :, 1:].copy_(base)):
        got = _fingerprint.fingerprint(other)
        assert list(got.own) == list(_fingerprint.fingerprint(base).own)
        assert got.count == base.numel()
        assert got.rms == pytest.approx(_fingerprint.fingerprint(base).rms, rel=1e-12)
    assert bytes(_fingerprint.fingerprint(base)) == want


def test_permuting_axes_permutes_the_sample():
    base = torch.randn(40, 3, 70)
    grid = [len(axis) for axis in _fingerprint.sample_grid(base.shape)]
    want = torch.tensor(list(_fingerprint.sample(base))).reshape(grid)
    got = torch.tensor(list(_fingerprint.sample(base.permute(2, 0, 1))))
    assert torch.equal(got.reshape(grid[2], grid[0], grid[1]), want.permute(2, 0, 1))


def test_unreadable_tensors_say_nothing():
    assert _fingerprint.fingerprint(torch.empty(3, device="meta")).dtype == 0
    assert _fingerprint.sample(torch.eye(3).to_sparse()) is None


def test_unsigned_words_hash_as_their_value():
    values = [0, 1, 65535]
    wide = _fingerprint.fingerprint(torch.tensor(values))
    narrow = _fingerprint.fingerprint(torch.tensor(values, dtype=torch.uint16))
    assert list(narrow.own) == list(wide.own)
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        assert list(_fingerprint.sample(torch.tensor(values, dtype=dtype))) == values


def test_one_element_repeated():
    for x in (torch.tensor([7]), torch.tensor([2.5], dtype=torch.float64), torch.tensor([True])):
        got = _fingerprint.fingerprint(x.expand(4, 9))
        assert got.count == 1 and list(got.own) == list(_fingerprint.fingerprint(x).own)
        assert list(_fingerprint.sample(x.expand(4, 9))) == [x.item()]
