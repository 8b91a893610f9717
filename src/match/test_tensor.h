// Strided float tensors in memory with versions, for the interpreter of test_eager.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "run/model.h"

namespace joulediff::match::testing {

using Shape = std::vector<std::int64_t>;
using value::DType;

struct Memory {
  std::uint64_t id = 0;
  std::uint64_t version = 0;
  std::vector<float> data;
  run::Role role = run::Role::computed;
  DType dtype = DType::float32;
};

struct Tensor {
  std::shared_ptr<Memory> memory;
  Shape shape;
  Shape stride;
  std::int64_t offset = 0;
};

// tf32 and bf16_matmul round what goes into products, bf16 every value.
enum class Precision { fp32, tf32, bf16_matmul, bf16 };

struct Options {
  Precision precision = Precision::fp32;
  bool backwards = false;   // sums run from the other end: other rounding errors
  unsigned seed = 1;        // of weights and inputs
  bool one_sample = false;  // of each set of elements, instead of one under every shape of it
};

inline float rounded(float x, int bits) {
  if (!std::isfinite(x)) return x;
  int exponent = 0;
  const float m = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(m, bits)), exponent - bits);
}

inline std::int64_t size_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

inline Shape dense_stride(const Shape& shape) {
  Shape stride(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * shape[i];
  return stride;
}

// Calls f(place) for each element of `a` in row-major order.
template <class F>
void for_each_place(const Tensor& a, F f) {
  const std::int64_t size = size_of(a.shape);
  Shape index(a.shape.size(), 0);
  std::int64_t place = a.offset;
  for (std::int64_t n = 0; n < size; ++n) {
    f(static_cast<std::size_t>(place));
    for (std::size_t i = index.size(); i-- > 0;) {
      place += a.stride[i];
      if (++index[i] < a.shape[i]) break;
      place -= a.stride[i] * a.shape[i];
      index[i] = 0;
    }
  }
}

inline std::vector<float> dense(const Tensor& a) {
  std::vector<float> data;
  data.reserve(static_cast<std::size_t>(size_of(a.shape)));
  for_each_place(a, [&](std::size_t p) { data.push_back(a.memory->data[p]); });
  return data;
}

}  // namespace joulediff::match::testing
