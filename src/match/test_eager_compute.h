// The arithmetic of test_eager.h, which includes this.
#pragma once

#include <bit>
#include <cstring>

#include "match/test_eager.h"

namespace joulediff::match::testing {

inline std::vector<std::byte> Eager::encoded(const std::vector<float>& data, DType dtype) {
  std::vector<std::byte> bytes;
  const auto put = [&](auto x) {
    const auto* from = reinterpret_cast<const std::byte*>(&x);
    bytes.insert(bytes.end(), from, from + sizeof x);
  };
  for (const float x : data) {
    switch (dtype) {
      case DType::bfloat16:
        put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16));
        break;
      case DType::int64: put(static_cast<std::int64_t>(x)); break;
      case DType::float64: put(static_cast<double>(x)); break;
      case DType::boolean: put(static_cast<std::uint8_t>(x != 0)); break;
      default: put(x);
    }
  }
  return bytes;
}

inline Tensor Eager::softmax_of(const Tensor& a) {
  std::vector<float> data = dense(a);
  const auto n = static_cast<std::size_t>(a.shape.back());
  for (auto row = data.begin(); row != data.end(); row += static_cast<std::ptrdiff_t>(n)) {
    const auto end = row + static_cast<std::ptrdiff_t>(n);
    const float top = *std::max_element(row, end);
    float total = 0;
    for (auto x = row; x != end; ++x) total += * x = std::exp(*x - top);
    for (auto x = row; x != end; ++x) *x /= total;
  }
  return make(a.shape, std::move(data));
}

inline std::vector<Tensor> Eager::norm_of(const Tensor& x, const Tensor& w, const Tensor& b) {
  std::vector<float> data = dense(x), means, scales;
  const std::vector<float> weight = dense(w), bias = dense(b);
  const std::size_t n = weight.size();
  for (std::size_t row = 0; row < data.size(); row += n) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < n; ++i) mean += data[row + i];
    mean /= static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) square += std::pow(data[row + i] - mean, 2);
    const double inverse = 1 / std::sqrt(square / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < n; ++i) {
      data[row + i] = static_cast<float>((data[row + i] - mean) * inverse) * weight[i] + bias[i];
    }
    means.push_back(static_cast<float>(mean));
    scales.push_back(static_cast<float>(inverse));
  }
  Shape rows = x.shape;
  rows.back() = 1;
  return {make(x.shape, std::move(data)), make(rows, std::move(means)),
          make(rows, std::move(scales))};
}

inline Tensor Eager::product(const Tensor& a, const Tensor& b, const Tensor* bias) {
  std::vector<float> x = dense(a), y = dense(b);
  const int bits = options_.precision == Precision::tf32          ? 11
                   : options_.precision == Precision::bf16_matmul ? 8
                                                                  : 24;
  for (std::vector<float>* data : {&x, &y}) {
    for (float& v : *data) v = bits < 24 ? rounded(v, bits) : v;
  }
  const auto k = static_cast<std::size_t>(a.shape.back());
  const auto n = static_cast<std::size_t>(b.shape.back());
  const std::size_t rows = x.size() / k;
  const std::size_t rows_each =
      b.shape.size() == 2 ? rows : static_cast<std::size_t>(a.shape[a.shape.size() - 2]);
  const std::vector<float> added = bias != nullptr ? dense(*bias) : std::vector<float>(n, 0.0F);
  std::vector<float> out(rows * n);
  for (std::size_t row = 0; row < rows; ++row) {
    const float* of_b = y.data() + row / rows_each * k * n;
    float* to = out.data() + row * n;
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t at = options_.backwards ? k - 1 - i : i;
      const float factor = x[row * k + at];
      for (std::size_t j = 0; j < n; ++j) to[j] += factor * of_b[at * n + j];
    }
    for (std::size_t j = 0; j < n; ++j) to[j] += added[j];
  }
  Shape shape = a.shape;
  shape.back() = b.shape.back();
  return make(shape, std::move(out));
}

}  // namespace joulediff::match::testing
