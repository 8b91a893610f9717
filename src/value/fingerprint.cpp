#include "value/fingerprint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <signal.h>
#include <system_error>
#include <thread>
#include <type_traits>

#include "value/bits.h"
#include "value/blocks.h"

// What fits into float32 exactly is widened to it and gathered block by block (blocks.h), on
// several threads where there is much. Doubles and integers are read twice: counts and moments
// first, then, with the extremes known, hashes and distinct values. Rounding to bf16 and fp16 is
// done on bits, since what the compiler and the processor offer differs between machines.

namespace joulediff::value {
namespace {

constexpr std::uint32_t kStride = 0x9E3779B1u;

void add32(Lanes& lanes, std::uint32_t word) {
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] += fmix(word ^ kSeeds[i]);
}

void add64(Lanes& lanes, std::uint64_t word) {
  const auto low = static_cast<std::uint32_t>(word);
  const auto high = static_cast<std::uint32_t>(word >> 32) * kStride;
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] += fmix(fmix(low ^ kSeeds[i]) ^ high);
}

// Canonical bits: one NaN, and no negative zero.
std::uint64_t float64_bits(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  if (magnitude > 0x7FF0000000000000u) return 0x7FF8000000000000u;
  return magnitude == 0 ? 0 : bits;
}

float from_fp16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t magnitude = h & 0x7FFFu;
  const std::uint32_t wide = (magnitude << 13) + ((magnitude >= 0x7C00u ? 224u : 112u) << 23);
  const auto subnormal = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>(sign | (magnitude < 0x400u ? subnormal : wide));
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

// Made of sums over the finite elements.
void set_moments(Fingerprint& f, const double (&sum)[5], double low, double high) {
  const std::uint64_t finite = f.count - f.nan - f.positive_infinity - f.negative_infinity;
  if (finite == 0) return;
  const auto count = static_cast<double>(finite);
  f.mean = sum[0] / count;
  f.mean_abs = sum[1] / count;
  f.rms = std::sqrt(sum[2] / count);
  f.m3 = sum[3] / count;
  f.l4 = std::sqrt(std::sqrt(sum[4] / count));
  f.min = low;
  f.max = high;
  f.distinct = low == high ? 1 : 2;
}

template <class Element>
Gathered gathered(const std::byte* base, std::size_t begin, std::size_t end, Element element) {
  Gathered result;
  float block[kBlock];
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t n = std::min(kBlock, end - at);
    for (std::size_t i = 0; i < n; ++i) block[i] = element(base, at + i);
    result.add(block, n);
  }
  return result;
}

// Parts of the elements, each on a thread of its own where there are enough of them.
template <class Element>
Gathered gathered(const std::byte* base, std::size_t n, Element element) {
  constexpr std::size_t kWorthAThread = std::size_t{1} << 19, kThreads = 16;
  const std::size_t parts = std::clamp<std::size_t>(
      n / kWorthAThread, 1,
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kThreads));
  if (parts == 1) return gathered(base, 0, n, element);
  std::vector<Gathered> results(parts);
  std::vector<std::thread> threads;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a program's signals are not these threads'
  for (std::size_t p = 1; p < parts; ++p) {
    const auto part = [&, p] {
      results[p] = gathered(base, n * p / parts, n * (p + 1) / parts, element);
    };
    try {
      threads.emplace_back(part);
    } catch (const std::system_error&) {  // the program has all the threads that it may have
      part();
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  results[0] = gathered(base, 0, n / parts, element);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t p = 1; p < parts; ++p) results[0].add(results[p]);
  return results[0];
}

template <class Element>
void measure(Fingerprint& f, const std::byte* base, std::size_t n, Element element) {
  double sum[5] = {};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(element(base, i));
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? f.nan : x > 0 ? f.positive_infinity : f.negative_infinity);
      continue;
    }
    const double square = x * x;
    sum[0] += x;
    sum[1] += std::fabs(x);
    sum[2] += square;
    sum[3] += square * x;
    sum[4] += square * square;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  set_moments(f, sum, low, high);
}

void hash(Fingerprint& f, std::int64_t x) {
  add64(f.own, static_cast<std::uint64_t>(x));
}

void hash_rounded(Fingerprint& f, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  add32(f.bf16, bf16_bits(bits));
  add32(f.fp16, fp16_bits(bits));
}

// Beyond float32's range the conversion is not defined by the language; it rounds to infinity.
float to_float(double x) {
  constexpr double kTooLarge = 0x1.FFFFFFp127;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (std::fabs(x) >= kTooLarge) return x > 0 ? kInf : -kInf;
  return static_cast<float>(x);
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
    if constexpr (std::is_same_v<decltype(element(bytes.data(), 0)), float>) {
      const Gathered all = gathered(bytes.data(), n, element);
      f.nan = all.nan;
      f.positive_infinity = all.positive_infinity;
      f.negative_infinity = all.negative_infinity;
      set_moments(f, all.sum, all.low, all.high);
      if (all.third) f.distinct = 3;
      f.own = all.own;
      f.bf16 = all.bf16;
      f.fp16 = all.fp16;
    } else {
      measure(f, bytes.data(), n, element);
      hash_all(f, bytes.data(), n, element);
    }
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
