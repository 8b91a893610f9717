// Gathered::add over elements, a vector at a time. Compiled once for each set of instructions: a
// file that includes this must use nothing of the standard library that the linker could take for
// another file's, and this file does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "value/bits.h"
#include "value/blocks.h"

namespace joulediff::value {
namespace {

// What one loop takes at once: vectors, or (what is left at the end) single elements. Doubles are
// as wide as the rest, hence fewer in a vector.
struct Wide {
  static constexpr std::size_t kWidth = 16, kDoubles = 8;
  typedef std::uint32_t Bits __attribute__((vector_size(64)));
  typedef std::int32_t Order __attribute__((vector_size(64)));
  typedef float Float __attribute__((vector_size(64)));
  typedef float Half __attribute__((vector_size(32)));
  typedef double Double __attribute__((vector_size(64)));
  JD_INLINE static void widen(const Float& x, Double (&out)[2]) {
    Half halves[2];
    std::memcpy(halves, &x, sizeof halves);
    for (std::size_t k = 0; k < 2; ++k) out[k] = __builtin_convertvector(halves[k], Double);
  }
  JD_INLINE static void count(const Order& mask, Bits& counts) { counts -= (Bits)mask; }
  template <class Vector>
  JD_INLINE static auto at(const Vector& v, std::size_t j) {
    return v[j];
  }
};
struct Single {
  static constexpr std::size_t kWidth = 1, kDoubles = 1;
  using Bits = std::uint32_t;
  using Order = std::int32_t;
  using Float = float;
  using Double = double;
  JD_INLINE static void widen(Float x, Double (&out)[1]) { out[0] = x; }
  JD_INLINE static void count(bool yes, Bits& counts) { counts += yes ? 1 : 0; }
  template <class T>
  JD_INLINE static T at(T v, std::size_t) {
    return v;
  }
};

constexpr std::int32_t kLast = 0x7FFFFFFF;

// Integers in the order of the numbers whose bits these are, and back: vectors of integers are
// compared in one instruction, those of numbers are not by every compiler.
template <class W>
JD_INLINE typename W::Order in_order(typename W::Bits bits) {
  const auto order = (typename W::Order)bits;
  return order ^ ((order >> 31) & kLast);
}
JD_INLINE float number(std::int32_t order) {
  const std::int32_t bits = order ^ ((order >> 31) & kLast);
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// n is a multiple of W::kWidth.
template <class W>
JD_INLINE void gather(const float* x, std::size_t n, Gathered& result) {
  using Bits = typename W::Bits;
  using Order = typename W::Order;
  using Float = typename W::Float;
  using Double = typename W::Double;
  constexpr std::size_t kParts = W::kWidth / W::kDoubles;
  Double sum[5][kParts] = {};
  Order low = Order{} + kLast, high = Order{} - kLast;
  Bits nan{}, positive{}, negative{}, own[2] = {}, bf16[2] = {}, fp16[2] = {};
  for (std::size_t i = 0; i < n; i += W::kWidth) {
    Float v;
    Bits bits;
    std::memcpy(&v, x + i, sizeof v);
    std::memcpy(&bits, x + i, sizeof bits);
    const Bits magnitude = bits & kMagnitude;
    W::count(magnitude > kInfinity, nan);
    W::count(bits == kInfinity, positive);
    W::count(bits == (kInfinity | ~kMagnitude), negative);
    const Order place = in_order<W>(float32_bits(bits));
    const Order below = magnitude < kInfinity ? place : Order{} + kLast;
    const Order above = magnitude < kInfinity ? place : Order{} - kLast;
    low = below < low ? below : low;
    high = above > high ? above : high;

    const Float finite = magnitude < kInfinity ? v : Float{};
    Float sizes;
    const Bits size = magnitude < kInfinity ? magnitude : Bits{};
    std::memcpy(&sizes, &size, sizeof sizes);
    Double d[kParts], absolute[kParts];
    W::widen(finite, d);
    W::widen(sizes, absolute);
    for (std::size_t k = 0; k < kParts; ++k) {
      const Double square = d[k] * d[k];
      sum[0][k] += d[k];
      sum[1][k] += absolute[k];
      sum[2][k] += square;
      sum[3][k] += square * d[k];
      sum[4][k] += square * square;
    }

    const Bits words[3] = {float32_bits(bits), bf16_bits(bits), fp16_bits(bits)};
    for (std::size_t k = 0; k < 2; ++k) {
      own[k] += fmix<Bits>(words[0] ^ kSeeds[k]);
      bf16[k] += fmix<Bits>(words[1] ^ kSeeds[k]);
      fp16[k] += fmix<Bits>(words[2] ^ kSeeds[k]);
    }
  }
  std::int32_t least = kLast, most = -kLast;
  for (std::size_t j = 0; j < W::kWidth; ++j) {
    result.nan += W::at(nan, j);
    result.positive_infinity += W::at(positive, j);
    result.negative_infinity += W::at(negative, j);
    if (W::at(low, j) < least) least = W::at(low, j);
    if (W::at(high, j) > most) most = W::at(high, j);
    for (std::size_t k = 0; k < 5; ++k)
      result.sum[k] += W::at(sum[k][j / W::kDoubles], j % W::kDoubles);
    for (std::size_t k = 0; k < 2; ++k) {
      result.own[k] += W::at(own[k], j);
      result.bf16[k] += W::at(bf16[k], j);
      result.fp16[k] += W::at(fp16[k], j);
    }
  }
  if (least > most) return;  // none is finite
  result.low = number(least);
  result.high = number(most);
  Bits between{};
  for (std::size_t i = 0; i < n; i += W::kWidth) {
    Bits bits;
    std::memcpy(&bits, x + i, sizeof bits);
    const Order place = in_order<W>(float32_bits(bits));
    W::count((place > least) & (place < most), between);
  }
  for (std::size_t j = 0; j < W::kWidth; ++j) result.third |= W::at(between, j) != 0;
}

}  // namespace
}  // namespace joulediff::value
