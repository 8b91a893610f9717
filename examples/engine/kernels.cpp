#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

namespace engine::kernels {
namespace {

constexpr int kLanes = 16;    // sums side by side, so that the compiler can vectorise
constexpr int kColumns = 64;  // of a linear layer's output that one task computes
constexpr std::size_t kAlignment = 64;
const float kRootTwoByPi = std::sqrt(2.0F / 3.14159265358979F);

float dot(const float* a, const float* b, int count) {
  float sums[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (const float s : sums) sum += s;
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void* allocate(std::size_t bytes) {
  return ::operator new(bytes, std::align_val_t(kAlignment));
}

void release(void* memory) {
  ::operator delete(memory, std::align_val_t(kAlignment));
}

void copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

const char* device_name() {
  return "cpu";
}

const jd_device* device() {
  return nullptr;
}

void embed(float* out, const std::int32_t* tokens, const float* wte, const float* wpe, int rows,
           int width, int position) {
  for (int r = 0; r < rows; ++r) {
    const float* const token = wte + static_cast<std::ptrdiff_t>(tokens[r]) * width;
    const float* const place = wpe + static_cast<std::ptrdiff_t>(position + r) * width;
    for (int i = 0; i < width; ++i) out[r * width + i] = token[i] + place[i];
  }
}

void layer_norm(float* out, const float* x, const float* weight, const float* bias, int rows,
                int width) {
  constexpr float kEpsilon = 1e-5F;
  for (int r = 0; r < rows; ++r, x += width, out += width) {
    double mean = 0, variance = 0;
    for (int i = 0; i < width; ++i) mean += x[i];
    mean /= width;
    for (int i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / std::sqrt(variance / width + kEpsilon);
    for (int i = 0; i < width; ++i)
      out[i] = static_cast<float>((x[i] - mean) * scale) * weight[i] + bias[i];
  }
}

void linear(float* out, const float* x, const float* w, const float* bias, int rows, int in,
            int n) {
#pragma omp parallel for
  for (int begin = 0; begin < n; begin += kColumns) {
    const int columns = std::min(kColumns, n - begin);
    for (int r = 0; r < rows; ++r) {
      float sums[kColumns] = {};
      for (int i = 0; i < in; ++i) {
        const float* const row = w + static_cast<std::ptrdiff_t>(i) * n + begin;
        const float factor = x[r * in + i];
        for (int c = 0; c < columns; ++c) sums[c] += factor * row[c];
      }
      for (int c = 0; c < columns; ++c) out[r * n + begin + c] = sums[c] + bias[begin + c];
    }
  }
}

void linear_transposed(float* out, const float* x, const float* w, const float* bias, int rows,
                       int in, int n) {
#pragma omp parallel for
  for (int c = 0; c < n; ++c)
    for (int r = 0; r < rows; ++r)
      out[r * n + c] =
          dot(x + r * in, w + static_cast<std::ptrdiff_t>(c) * in, in) + (bias ? bias[c] : 0);
}

void transpose(float* out, const float* w, int in, int n) {
#pragma omp parallel for
  for (int c = 0; c < n; ++c)
    for (int i = 0; i < in; ++i)
      out[static_cast<std::ptrdiff_t>(c) * in + i] = w[static_cast<std::ptrdiff_t>(i) * n + c];
}

void copy_rows(float* to, const float* from, int rows, int width, int stride) {
  for (int r = 0; r < rows; ++r)
    std::copy_n(from + static_cast<std::ptrdiff_t>(r) * stride, width, to + r * width);
}

void attention(float* out, const float* q, const float* k, const float* v, int rows, int position,
               int heads, int size, int q_stride) {
  const int width = heads * size;
  const float scale = 1 / std::sqrt(static_cast<float>(size));
#pragma omp parallel for
  for (int head = 0; head < heads; ++head) {
    std::vector<float> scores(static_cast<std::size_t>(position + rows));
    for (int r = 0; r < rows; ++r) {
      const int seen = position + r + 1;
      float most = -INFINITY, sum = 0;
      for (int s = 0; s < seen; ++s) {
        scores[s] = scale * dot(q + r * q_stride + head * size, k + s * width + head * size, size);
        most = std::max(most, scores[s]);
      }
      for (int s = 0; s < seen; ++s) sum += scores[s] = std::exp(scores[s] - most);
      float* const mixed = out + r * width + head * size;
      std::fill_n(mixed, size, 0.0F);
      for (int s = 0; s < seen; ++s)
        for (int i = 0; i < size; ++i) mixed[i] += scores[s] / sum * v[s * width + head * size + i];
    }
  }
}

void gelu(float* out, const float* x, int count) {
#pragma omp parallel for
  for (int i = 0; i < count; ++i) {
    const float inner = kRootTwoByPi * (x[i] + 0.044715F * x[i] * x[i] * x[i]);
    out[i] = 0.5F * x[i] * (1 + std::tanh(inner));
  }
}

void add(float* x, const float* y, int count) {
  for (int i = 0; i < count; ++i) x[i] += y[i];
}

void argmax(std::int32_t* out, const float* x, int count) {
  *out = static_cast<std::int32_t>(std::max_element(x, x + count) - x);
}

void pointwise(Pointwise what, float* out, const float* x, const float* y, float factor,
               int count) {
  for (int i = 0; i < count; ++i) {
    switch (what) {
      case Pointwise::cube: out[i] = std::pow(x[i], 3.0F); break;
      case Pointwise::scale: out[i] = factor * x[i]; break;
      case Pointwise::add: out[i] = x[i] + y[i]; break;
      case Pointwise::tanh: out[i] = std::tanh(x[i]); break;
      case Pointwise::one_plus: out[i] = 1 + x[i]; break;
      case Pointwise::multiply: out[i] = x[i] * y[i]; break;
    }
  }
}

}  // namespace engine::kernels
