#!/usr/bin/env python3
"""Writes tests/golden/fingerprints.json: the test vectors of docs/fingerprint.md.

The expected values come from this file, which follows the definition word for word in exact
rational and integer arithmetic and shares nothing with the producers that reproduce them.

The elements of a case: with x = seed, each word is the next x = (1664525 x + 1013904223) mod 2^32.
An element of at most 32 bits has as its bits the upper bits of one word; one of 64 bits has the
first word as its low half and the next as its high half; a complex one is two such elements. Then
bits = (bits & and) | or, and `set` replaces single elements: [flat index, bits]. Bits are hexadecimal.
`sample` holds the bits of float32 values, with every NaN written as 7fc00000.
"""

import json
import math
import pathlib
from fractions import Fraction

M32 = 0xFFFFFFFF
# code, bits of an element's part, exponent bits, mantissa bits
FLOATS = {
    "float32": (1, 32, 8, 23), "float64": (2, 64, 11, 52), "float16": (3, 16, 5, 10),
    "bfloat16": (4, 16, 8, 7), "complex64": (11, 32, 8, 23), "complex128": (12, 64, 11, 52),
    "float8_e4m3": (13, 8, 4, 3), "float8_e5m2": (14, 8, 5, 2),
}
INTEGERS = {"int8": (5, 8), "int16": (6, 16), "int32": (7, 32), "int64": (8, 64), "uint8": (9, 8),
            "boolean": (10, 8)}
NAN, INF = "nan", "inf"


def words(seed):
    x = seed
    while True:
        x = (1664525 * x + 1013904223) & M32
        yield x


def elements(case):
    dtype, stream = case["dtype"], words(case["seed"])
    width = (FLOATS.get(dtype) or INTEGERS[dtype])[1]
    count = math.prod(case["shape"]) * (2 if dtype.startswith("complex") else 1)
    keep, force = int(case["and"], 16), int(case["or"], 16)
    for _ in range(count):
        bits = next(stream) >> (32 - width) if width <= 32 else next(stream) | next(stream) << 32
        yield (bits & keep) | force


def decode(bits, width, exponent_bits, mantissa_bits, fn=False):
    """(negative, magnitude): a Fraction, NAN or INF."""
    negative = bits >> (width - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    top, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    if fn and exponent == top and mantissa == (1 << mantissa_bits) - 1:
        return negative, NAN
    if exponent == top and not fn:
        return negative, NAN if mantissa else INF
    if exponent:
        mantissa += 1 << mantissa_bits
    return negative, Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)


def encode(value, width, exponent_bits, mantissa_bits):
    """Bits of (negative, magnitude), to nearest, ties to even; zero has no sign, NaN is canonical."""
    negative, magnitude = value
    top, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    if magnitude == NAN:
        return (top << mantissa_bits) | (1 << (mantissa_bits - 1))
    sign = negative << (width - 1)
    if magnitude == INF:
        return sign | top << mantissa_bits
    if magnitude == 0:
        return 0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    units = round(magnitude / Fraction(2) ** (exponent - mantissa_bits))  # ties to even
    if units == 0:
        return 0
    if units < 1 << mantissa_bits:
        return sign | units  # subnormal
    if units == 2 << mantissa_bits:
        units, exponent = units // 2, exponent + 1
    if exponent > bias:
        return sign | top << mantissa_bits
    return sign | (exponent + bias) << mantissa_bits | (units - (1 << mantissa_bits))


def fmix(x):
    x ^= x >> 16
    x = x * 0x85EBCA6B & M32
    x ^= x >> 13
    x = x * 0xC2B2AE35 & M32
    return x ^ (x >> 16)


SEEDS = (0x9E3779B9, 0x7F4A7C15)


def mix32(w):
    return [fmix(w ^ s) for s in SEEDS]


def mix64(w):
    return [fmix(fmix((w & M32) ^ s) ^ ((w >> 32) * 0x9E3779B1 & M32)) for s in SEEDS]


def lanes(mixes):
    totals = [0, 0]
    for mix in mixes:
        totals = [(t + m) & M32 for t, m in zip(totals, mix)]
    return totals


def moments(finite):
    n = len(finite)
    if n == 0:
        return dict(mean=0.0, mean_abs=0.0, rms=0.0, l4=0.0, m3=0.0, min=0.0, max=0.0)
    power = lambda k: float(sum(x**k for x in finite) / n)  # exact until here
    return dict(mean=power(1), mean_abs=float(sum(map(abs, finite)) / n),
                rms=math.sqrt(power(2)), l4=math.sqrt(math.sqrt(power(4))), m3=power(3),
                min=float(min(finite)), max=float(max(finite)))


def grid(shape):
    lengths = [n for n in shape if n != 1]
    k = 1
    while k < 512 and math.prod(min(n, k + 1) for n in lengths) <= 512:
        k += 1
    positions = [0]
    for n in lengths:
        kept, axis = min(n, k), []
        for j in range(kept):
            low, high = j * n // kept, (j + 1) * n // kept
            axis.append(low + fmix((fmix(n & M32) + j * 0x9E3779B1) & M32) % (high - low))
        positions = [p * n + i for p in positions for i in axis]
    return positions


def expected(case):
    dtype = case["dtype"]
    bits = list(elements(case))
    for index, replacement in case["set"]:
        bits[index] = int(replacement, 16)
    out = dict(count=len(bits), nan=0, positive_infinity=0, negative_infinity=0)
    f32 = (32, 8, 23)
    if dtype in FLOATS:
        layout = FLOATS[dtype][1:]
        values = [decode(b, *layout, fn=dtype == "float8_e4m3") for b in bits]
        out["nan"] = sum(m == NAN for _, m in values)
        out["positive_infinity"] = sum(m == INF and not s for s, m in values)
        out["negative_infinity"] = sum(m == INF and s == 1 for s, m in values)
        finite = [-m if s else m for s, m in values if m not in (NAN, INF)]
        singles = [encode(v, *f32) for v in values]
        wide = layout[0] == 64
        out["own"] = lanes(mix64(encode(v, *layout)) if wide else mix32(single)
                           for v, single in zip(values, singles))
        rounded = [decode(single, *f32) for single in singles]
        out["bf16"] = lanes(mix32(encode(v, 16, 8, 7)) for v in rounded)
        out["fp16"] = lanes(mix32(encode(v, 16, 5, 10)) for v in rounded)
        # A sample keeps the sign of a zero.
        samples = [single | ((s << 31) if single == 0 else 0)
                   for single, (s, _) in zip(singles, values)]
    else:
        width = INTEGERS[dtype][1]
        signed = dtype.startswith("int")
        values = [b - (1 << width) if signed and b >> (width - 1) else b for b in bits]
        finite = [Fraction(v) for v in values]
        out["own"] = lanes(mix64(v & 0xFFFFFFFFFFFFFFFF) for v in values)
        out["bf16"], out["fp16"] = [0, 0], [0, 0]
        samples = [encode((int(v < 0), Fraction(abs(v))), *f32) for v in values]
    out.update(moments(finite))
    out["distinct"] = min(len(set(finite)), 3)
    if out["distinct"] == 3 and set(finite) <= {min(finite), max(finite)}:
        out["distinct"] = 2
    shape = case["shape"] + ([2] if dtype.startswith("complex") else [])
    out["sample"] = ["%08x" % samples[p] for p in grid(shape)] if bits else []
    return out


def case(name, dtype, shape, keep=None, force="0", seed=1, put=()):
    code, width = (FLOATS.get(dtype) or INTEGERS[dtype])[:2]
    return dict(name=name, dtype=dtype, code=code, shape=list(shape), seed=seed,
                **{"and": keep or "f" * (width // 4), "or": force}, set=[list(p) for p in put])


# float32 in +-[0.125, 2); float64, float16, bfloat16 likewise around one.
F32, F64 = ("81ffffff", "3e000000"), ("801fffffffffffff", "3fe0000000000000")
F16, BF16 = ("8fff", "3000"), ("80ff", "3f00")
SPECIAL32 = [(0, "7fc00000"), (1, "ffc12345"), (2, "7f800000"), (3, "ff800000"), (4, "80000000"),
             (5, "00000000"), (6, "00000001"), (7, "807fffff"), (8, "00800000"), (9, "b3000000"),
             (10, "33000001"), (11, "387fc000"), (12, "387fe000"), (13, "477fefff"),
             (14, "477ff000"), (15, "c7800000"), (16, "3f808000"), (17, "3f818000"),
             (18, "3f801000"), (19, "3f803000"), (20, "3f7fffff"), (21, "33c00000"),
             (22, "38000800")]
CASES = [
    case("float32_vector", "float32", [97], *F32),
    case("float32_matrix", "float32", [40, 33], *F32, seed=2),
    case("float32_matrix_other_order", "float32", [33, 40], *F32, seed=2),
    case("float32_image", "float32", [2, 3, 11, 13], *F32, seed=3),
    case("float32_unit_axes", "float32", [1, 7, 1, 5, 1], *F32, seed=4),
    case("float32_long", "float32", [5000], *F32, seed=5),
    case("float32_nine_twos", "float32", [2] * 9, *F32, seed=6),
    case("float32_ten_twos", "float32", [2] * 10, *F32, seed=7),
    case("float32_scalar", "float32", [], *F32, seed=8),
    case("float32_empty", "float32", [0, 4], *F32, seed=9),
    case("float32_special", "float32", [5, 6], *F32, seed=10, put=SPECIAL32),
    case("float32_constant", "float32", [4, 5], "0", "3fc00000"),
    case("float32_two_values", "float32", [64], "80000000", "3f800000", seed=11),
    case("float32_two_values_and_zero", "float32", [64], "80000000", "3f800000", seed=11,
         put=[(17, "80000000")]),
    case("float32_only_nan", "float32", [3], "0", "7fc00000"),
    case("float32_signed_zeros", "float32", [8], "80000000", "0", seed=12),
    case("float32_huge", "float32", [6], "80ffffff", "7e000000", seed=13,
         put=[(0, "7f7fffff"), (1, "7f7f7fff"), (2, "7f7f8000")]),
    case("float64_matrix", "float64", [19, 21], *F64, seed=14),
    case("float64_special", "float64", [16], *F64, seed=15,
         put=[(0, "7ff8000000000000"), (1, "fff0000000000001"), (2, "7ff0000000000000"),
              (3, "fff0000000000000"), (4, "8000000000000000"), (5, "0000000000000001"),
              (6, "3ff0000010000000"), (7, "3ff0000030000000"), (8, "47efffffe0000000"),
              (9, "47efffffefffffff"), (10, "c7effffff0000000"), (11, "36a0000000000000"),
              (12, "3690000000000000"), (13, "3fefffffffffffff")]),
    case("float16_matrix", "float16", [30, 31], *F16, seed=16),
    case("float16_any_bits", "float16", [700], seed=17),
    case("bfloat16_matrix", "bfloat16", [12, 50], *BF16, seed=18),
    case("bfloat16_special", "bfloat16", [9], *BF16, seed=19,
         put=[(0, "7fc1"), (1, "7f80"), (2, "ff80"), (3, "8000"), (4, "0001"), (5, "3380")]),
    case("float8_e4m3_any_bits", "float8_e4m3", [300], seed=20),
    case("float8_e5m2_any_bits", "float8_e5m2", [300], seed=21),
    case("int8_any_bits", "int8", [300], seed=22),
    case("int16_any_bits", "int16", [300], seed=23),
    case("int32_any_bits", "int32", [17, 23], seed=24),
    case("int64_any_bits", "int64", [200], seed=25, put=[(0, "8000000000000000"), (1, "0")]),
    case("int64_small", "int64", [8, 16], "ffff", "0", seed=26),
    case("uint8_any_bits", "uint8", [300], seed=27),
    case("boolean_mask", "boolean", [6, 50], "1", "0", seed=28),
    case("boolean_all_true", "boolean", [10], "0", "1"),
    case("complex64_vector", "complex64", [77], *F32, seed=29),
    case("complex128_matrix", "complex128", [5, 7], *F64, seed=30),
]


def main():
    for c in CASES:
        c["expected"] = expected(c)
    path = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/fingerprints.json"
    text = ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES)
    about = "docs/fingerprint.md; made by tools/fingerprint_vectors.py, which explains the fields"
    path.write_text('{"schema":"joulediff.fingerprints/1","about":%s,"cases":[\n%s\n]}\n'
                    % (json.dumps(about), text))


if __name__ == "__main__":
    main()
