// The same code is compiled for what processors have had since 2003, 2013 and 2017, and the best
// that this one has is taken. Each sum is kept in lanes of its own.
#include "value/blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "value/gather.h"

namespace joulediff::value {

// In files of their own.
using Gather = void(const float*, std::size_t, Gathered&);
Gather gather_plain, gather_avx2, gather_avx512;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Gather* best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return gather_avx512;
  if (__builtin_cpu_supports("avx2")) return gather_avx2;
#endif
  return gather_plain;
}

}  // namespace

Gathered::Gathered() : low(kInf), high(-kInf) {}

void Gathered::add(const Gathered& other) {
  nan += other.nan;
  positive_infinity += other.positive_infinity;
  negative_infinity += other.negative_infinity;
  for (std::size_t k = 0; k < 5; ++k) sum[k] += other.sum[k];
  for (std::size_t k = 0; k < 2; ++k) {
    own[k] += other.own[k];
    bf16[k] += other.bf16[k];
    fp16[k] += other.fp16[k];
  }
  const float least = std::min(low, other.low), most = std::max(high, other.high);
  for (const float x : {low, high, other.low, other.high}) third |= x > least && x < most;
  third |= other.third;
  low = least;
  high = most;
}

void Gathered::add(const float* x, std::size_t n) {
  static Gather* const gather_vectors = best();
  const std::size_t whole = n / Wide::kWidth * Wide::kWidth;
  Gathered vectors, rest;
  gather_vectors(x, whole, vectors);
  gather<Single>(x + whole, n - whole, rest);
  add(vectors);
  add(rest);
}

}  // namespace joulediff::value
