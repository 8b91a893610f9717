// What stands for a tensor's value. docs/fingerprint.md is the definition; this is its reference
// implementation in C++, which the torch, JAX and CUDA producers are tested against.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace joulediff::value {

// The codes are part of the file format and of the C ABI.
enum class DType : std::uint8_t {
  other = 0,
  float32 = 1,
  float64 = 2,
  float16 = 3,
  bfloat16 = 4,
  int8 = 5,
  int16 = 6,
  int32 = 7,
  int64 = 8,
  uint8 = 9,
  boolean = 10,
  complex64 = 11,
  complex128 = 12,
  float8_e4m3 = 13,
  float8_e5m2 = 14,
};

// Tensors of different classes are never equal.
enum class DTypeClass : std::uint8_t { real = 0, integer = 1, boolean = 2, complex = 3 };
DTypeClass class_of(DType dtype);

// A multiset hash: the sum modulo 2^32 of a 32-bit mix of each element, in two independent lanes.
using Lanes = std::array<std::uint32_t, 2>;

// Moments are over the finite elements, in double precision; 0 where there are none.
struct Fingerprint {
  std::uint64_t count = 0;  // elements, without stride-0 axes
  std::uint64_t nan = 0;
  std::uint64_t positive_infinity = 0;
  std::uint64_t negative_infinity = 0;
  double mean = 0;
  double mean_abs = 0;
  double rms = 0;
  double l4 = 0;  // fourth root of the mean fourth power
  double m3 = 0;  // mean third power
  double min = 0;
  double max = 0;
  Lanes own{};   // bits of the element's own dtype
  Lanes bf16{};  // after rounding to bfloat16; zero for integers
  Lanes fp16{};  // after rounding to float16; zero for integers
  DType dtype = DType::other;
  std::uint8_t distinct = 0;  // distinct finite values, counted up to 3

  bool operator==(const Fingerprint&) const = default;
};

constexpr std::size_t kSampleLimit = 512;

// Fingerprint of a contiguous tensor. `bytes` holds the elements; size = count * size of dtype.
Fingerprint fingerprint(DType dtype, std::span<const std::byte> bytes);

// For each axis (length-1 and stride-0 axes already dropped) the chosen indices, ascending.
// They depend on the axis length and on the multiset of lengths alone, so that a permutation of
// the axes permutes the grid.
std::vector<std::vector<std::uint32_t>> sample_grid(std::span<const std::int64_t> shape);

// The grid's values as float, row-major over the grid, of a contiguous tensor.
std::vector<float> sample(DType dtype, std::span<const std::byte> bytes,
                          std::span<const std::int64_t> shape);

}  // namespace joulediff::value
