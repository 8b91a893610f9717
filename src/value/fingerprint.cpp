#include "value/fingerprint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

// Two readings of the elements: counts and moments first, then, with the extremes known, hashes and
// distinct values. Everything narrower than 32 bits is widened to float32, which is exact, so that
// three kinds of element remain: float, double and int64. Rounding to bf16 and fp16 is done here on
// bits, since what the compiler and the processor offer differs between machines.

namespace joulediff::value {
namespace {

constexpr Lanes kSeeds{0x9E3779B9u, 0x7F4A7C15u};
constexpr std::uint32_t kStride = 0x9E3779B1u;

constexpr std::uint32_t fmix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  return x;
}

void add32(Lanes& lanes, std::uint32_t word) {
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] += fmix(word ^ kSeeds[i]);
}

void add64(Lanes& lanes, std::uint64_t word) {
  const auto low = static_cast<std::uint32_t>(word);
  const auto high = static_cast<std::uint32_t>(word >> 32) * kStride;
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] += fmix(fmix(low ^ kSeeds[i]) ^ high);
}

// To nearest, ties to even, dropping `shift` bits (1..24).
constexpr std::uint32_t round_off(std::uint32_t x, unsigned shift) {
  return (x + (1u << (shift - 1)) - 1 + ((x >> shift) & 1u)) >> shift;
}

constexpr std::uint32_t kMagnitude = 0x7FFFFFFFu;
constexpr std::uint32_t kInfinity = 0x7F800000u;

// Canonical bits: one NaN, and no negative zero.
std::uint32_t float32_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & kMagnitude;
  if (magnitude > kInfinity) return 0x7FC00000u;
  return magnitude == 0 ? 0 : bits;
}

std::uint64_t float64_bits(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  if (magnitude > 0x7FF0000000000000u) return 0x7FF8000000000000u;
  return magnitude == 0 ? 0 : bits;
}

std::uint32_t with_sign(std::uint32_t magnitude16, std::uint32_t bits32) {
  return magnitude16 == 0 ? 0 : magnitude16 | ((bits32 >> 16) & 0x8000u);
}

std::uint32_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & kMagnitude;
  if (magnitude > kInfinity) return 0x7FC0u;
  return with_sign(round_off(magnitude, 16), bits);
}

std::uint32_t fp16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & kMagnitude;
  if (magnitude > kInfinity) return 0x7E00u;
  if (magnitude >= 0x477FF000u) return with_sign(0x7C00u, bits);  // 65520 and above
  if (magnitude >= 0x38800000u)                                   // 2^-14: normal
    return with_sign(round_off(magnitude - (112u << 23), 13), bits);
  if (magnitude <= 0x33000000u) return 0;  // 2^-25 and below
  const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  return with_sign(round_off(mantissa, 126 - (magnitude >> 23)), bits);
}

float from_fp16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1Fu;
  const std::uint32_t mantissa = h & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

float from_bf16(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

// The "fn" variant: no infinities, and only the all-ones magnitude is NaN.
float from_e4m3(std::uint8_t b) {
  const std::uint32_t exponent = (b >> 3) & 0xFu;
  const std::uint32_t mantissa = b & 7u;
  if ((b & 0x7Fu) == 0x7Fu) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? static_cast<float>(mantissa) * 0x1p-9f
                              : std::bit_cast<float>(((exponent + 120) << 23) | (mantissa << 20));
  return (b & 0x80u) ? -magnitude : magnitude;
}

float from_e5m2(std::uint8_t b) {
  return from_fp16(static_cast<std::uint16_t>(b << 8));
}

template <class Raw>
Raw load(const std::byte* base, std::size_t i) {
  Raw raw;
  std::memcpy(&raw, base + i * sizeof raw, sizeof raw);
  return raw;
}

// Calls visit(size of an element, element), where element(base, i) is a float, a double or an
// int64; a complex element counts as two.
template <class Visit>
auto with_elements(DType dtype, Visit visit) {
  const auto integers = [&]<class Raw>(Raw) {
    return visit(sizeof(Raw), [](const std::byte* base, std::size_t i) {
      return static_cast<std::int64_t>(load<Raw>(base, i));
    });
  };
  const auto widened = [&]<class Raw>(Raw, auto widen) {
    return visit(sizeof(Raw), [widen](const std::byte* base, std::size_t i) {
      return widen(load<Raw>(base, i));
    });
  };
  switch (dtype) {
    case DType::float64:
    case DType::complex128: return widened(double{}, [](double x) { return x; });
    case DType::float16: return widened(std::uint16_t{}, from_fp16);
    case DType::bfloat16: return widened(std::uint16_t{}, from_bf16);
    case DType::float8_e4m3: return widened(std::uint8_t{}, from_e4m3);
    case DType::float8_e5m2: return widened(std::uint8_t{}, from_e5m2);
    case DType::int8: return integers(std::int8_t{});
    case DType::int16: return integers(std::int16_t{});
    case DType::int32: return integers(std::int32_t{});
    case DType::int64: return integers(std::int64_t{});
    case DType::uint8: return integers(std::uint8_t{});
    case DType::boolean:
      return widened(std::uint8_t{}, [](std::uint8_t x) { return std::int64_t{x != 0}; });
    case DType::float32:
    case DType::complex64:
    case DType::other: break;
  }
  return widened(float{}, [](float x) { return x; });
}

template <class Element>
void measure(Fingerprint& f, const std::byte* base, std::size_t n, Element element) {
  double sum = 0, sum_abs = 0, sum2 = 0, sum3 = 0, sum4 = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(element(base, i));
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? f.nan : x > 0 ? f.positive_infinity : f.negative_infinity);
      continue;
    }
    const double square = x * x;
    sum += x;
    sum_abs += std::fabs(x);
    sum2 += square;
    sum3 += square * x;
    sum4 += square * square;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  const std::uint64_t finite = n - f.nan - f.positive_infinity - f.negative_infinity;
  if (finite == 0) return;
  const auto count = static_cast<double>(finite);
  f.mean = sum / count;
  f.mean_abs = sum_abs / count;
  f.rms = std::sqrt(sum2 / count);
  f.m3 = sum3 / count;
  f.l4 = std::sqrt(std::sqrt(sum4 / count));
  f.min = low;
  f.max = high;
  f.distinct = low == high ? 1 : 2;
}

void hash(Fingerprint& f, std::int64_t x) {
  add64(f.own, static_cast<std::uint64_t>(x));
}

void hash_rounded(Fingerprint& f, float x) {
  add32(f.bf16, bf16_bits(x));
  add32(f.fp16, fp16_bits(x));
}

void hash(Fingerprint& f, float x) {
  add32(f.own, float32_bits(x));
  hash_rounded(f, x);
}

// Beyond float32's range the conversion is not defined by the language; it rounds to infinity.
float to_float(double x) {
  constexpr double kTooLarge = 0x1.FFFFFFp127;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (std::fabs(x) >= kTooLarge) return x > 0 ? kInf : -kInf;
  return static_cast<float>(x);
}
float to_float(float x) {
  return x;
}
float to_float(std::int64_t x) {
  return static_cast<float>(x);
}

void hash(Fingerprint& f, double x) {
  add64(f.own, float64_bits(x));
  hash_rounded(f, to_float(x));
}

template <class Element>
void hash_all(Fingerprint& f, const std::byte* base, std::size_t n, Element element) {
  bool more = false;
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = element(base, i);
    hash(f, x);
    const auto value = static_cast<double>(x);
    more |= std::isfinite(value) && value != f.min && value != f.max;
  }
  if (more) f.distinct = 3;
}

bool is_complex(DType dtype) {
  return class_of(dtype) == DTypeClass::complex;
}

}  // namespace

DTypeClass class_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return DTypeClass::boolean;
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
    case DType::uint8: return DTypeClass::integer;
    case DType::complex64:
    case DType::complex128: return DTypeClass::complex;
    case DType::other:
    case DType::float32:
    case DType::float64:
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3:
    case DType::float8_e5m2: break;
  }
  return DTypeClass::real;
}

Fingerprint fingerprint(DType dtype, std::span<const std::byte> bytes) {
  Fingerprint f;
  f.dtype = dtype;
  if (dtype == DType::other) return f;
  with_elements(dtype, [&](std::size_t size, auto element) {
    const std::size_t n = bytes.size() / size;
    f.count = n;
    measure(f, bytes.data(), n, element);
    hash_all(f, bytes.data(), n, element);
  });
  return f;
}

std::vector<std::vector<std::uint32_t>> sample_grid(std::span<const std::int64_t> shape) {
  const auto fits = [&](std::uint64_t limit) {
    std::uint64_t product = 1;
    for (const std::int64_t n : shape) {
      product *= std::min(static_cast<std::uint64_t>(n), limit);
      if (product > kSampleLimit) return false;
    }
    return true;
  };
  std::uint64_t limit = 1;
  while (limit < kSampleLimit && fits(limit + 1)) ++limit;

  std::vector<std::vector<std::uint32_t>> grid;
  for (const std::int64_t length : shape) {
    const auto n = static_cast<std::uint64_t>(length);
    const std::uint64_t kept = std::min(n, limit);
    const std::uint32_t seed = fmix(static_cast<std::uint32_t>(n));
    auto& axis = grid.emplace_back();
    for (std::uint64_t j = 0; j < kept; ++j) {
      const std::uint64_t low = j * n / kept, high = (j + 1) * n / kept;
      const std::uint32_t draw = fmix(seed + static_cast<std::uint32_t>(j) * kStride);
      axis.push_back(static_cast<std::uint32_t>(low + draw % (high - low)));
    }
  }
  return grid;
}

std::vector<float> sample(DType dtype, std::span<const std::byte> bytes,
                          std::span<const std::int64_t> shape) {
  std::vector<float> values;
  if (dtype == DType::other) return values;
  std::vector<std::int64_t> lengths;
  for (const std::int64_t n : shape)
    if (n != 1) lengths.push_back(n);
  if (is_complex(dtype)) lengths.push_back(2);

  // Flat positions of the grid, one axis after the other; row-major order comes of itself.
  std::vector<std::uint64_t> positions{0};
  const auto grid = sample_grid(lengths);
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    std::vector<std::uint64_t> next;
    next.reserve(positions.size() * grid[axis].size());
    for (const std::uint64_t position : positions)
      for (const std::uint32_t index : grid[axis])
        next.push_back(position * static_cast<std::uint64_t>(lengths[axis]) + index);
    positions = std::move(next);
  }
  with_elements(dtype, [&](std::size_t size, auto element) {
    for (const std::uint64_t position : positions)
      if ((position + 1) * size <= bytes.size())
        values.push_back(to_float(element(bytes.data(), position)));
  });
  return values;
}

}  // namespace joulediff::value
