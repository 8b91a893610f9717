// The part of a fingerprint that costs: what a block of single-precision elements adds to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "value/fingerprint.h"

namespace joulediff::value {

constexpr std::size_t kBlock =
    4096;  // elements that are looked at together: they stay in the cache

// What is known of some elements, before it is made into moments.
struct Gathered {
  std::uint64_t nan = 0, positive_infinity = 0, negative_infinity = 0;
  double sum[5] = {};  // of x, |x|, x^2, x^3, x^4 of those that are finite
  float low, high;     // of the same; low > high: there are none
  bool third = false;  // a finite one between low and high
  Lanes own{}, bf16{}, fp16{};

  Gathered();
  void add(const Gathered& other);
  void add(const float* x, std::size_t n);  // at most kBlock
};

}  // namespace joulediff::value
