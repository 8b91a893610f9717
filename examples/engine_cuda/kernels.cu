// The engine's arithmetic on a GPU: ../engine/kernels.h in CUDA C++, with nothing but the runtime.
// All of it runs on the default stream, in order.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace engine::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kRows = 8;     // of a linear layer's output that one block computes
constexpr int kDepth = 128;  // of its input that a block holds at a time
constexpr int kTile = 32;
constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr std::uint64_t kSpinNanoseconds = 1'000'000;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

void launched(const char* what) {
  check(cudaGetLastError(), what);
}

unsigned blocks(int count, int each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

struct Sum {
  __device__ static float identity() { return 0; }
  __device__ static float of(float a, float b) { return a + b; }
};
struct Most {
  __device__ static float identity() { return -INFINITY; }
  __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

template <class Of>
__device__ float over_warp(float x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x = Of::of(x, __shfl_xor_sync(kAll, x, step));
  return x;
}

// The same in every thread of the block.
template <class Of>
__device__ float over_block(float x) {
  __shared__ float parts[kWarps];
  x = over_warp<Of>(x);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = Of::identity();
  for (const float part : parts) x = Of::of(x, part);
  __syncthreads();
  return x;
}

__global__ void embed_kernel(float* out, const std::int32_t* tokens, const float* wte,
                             const float* wpe, int width, int position) {
  const std::int64_t row = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += kThreads)
    out[row * width + i] =
        wte[std::int64_t{tokens[row]} * width + i] + wpe[(position + row) * width + i];
}

__global__ void layer_norm_kernel(float* out, const float* x, const float* weight,
                                  const float* bias, int width) {
  constexpr float kEpsilon = 1e-5F;
  x += std::int64_t{blockIdx.x} * width;
  out += std::int64_t{blockIdx.x} * width;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < width; i += kThreads) sum += x[i];
  const float mean = over_block<Sum>(sum) / width;
  for (int i = threadIdx.x; i < width; i += kThreads) squares += (x[i] - mean) * (x[i] - mean);
  const float scale = rsqrtf(over_block<Sum>(squares) / width + kEpsilon);
  for (int i = threadIdx.x; i < width; i += kThreads)
    out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

// A thread computes one column of kRows rows; the block reads their inputs together.
__global__ void linear_kernel(float* out, const float* x, const float* w, const float* bias,
                              int rows, int in, int n) {
  __shared__ float inputs[kRows][kDepth];
  const int column = blockIdx.x * kThreads + threadIdx.x, first = blockIdx.y * kRows;
  float sums[kRows] = {};
  for (int begin = 0; begin < in; begin += kDepth) {
    for (int r = 0; r < kRows; ++r)
      for (int i = threadIdx.x; i < kDepth; i += kThreads)
        inputs[r][i] =
            first + r < rows && begin + i < in ? x[std::int64_t{first + r} * in + begin + i] : 0;
    __syncthreads();
    for (int i = 0; column < n && i < min(kDepth, in - begin); ++i) {
      const float weight = w[std::int64_t{begin + i} * n + column];
      for (int r = 0; r < kRows; ++r) sums[r] += inputs[r][i] * weight;
    }
    __syncthreads();
  }
  if (column >= n) return;
  for (int r = 0; r < kRows && first + r < rows; ++r)
    out[std::int64_t{first + r} * n + column] = sums[r] + bias[column];
}

// A warp computes one element.
__global__ void linear_transposed_kernel(float* out, const float* x, const float* w,
                                         const float* bias, int in, int n) {
  const int column = blockIdx.x * kWarps + threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (column >= n) return;
  x += std::int64_t{blockIdx.y} * in;
  float sum = 0;
  for (int i = lane; i < in; i += kWarp) sum += x[i] * w[std::int64_t{column} * in + i];
  sum = over_warp<Sum>(sum);
  if (lane == 0)
    out[std::int64_t{blockIdx.y} * n + column] = sum + (bias != nullptr ? bias[column] : 0);
}

__global__ void transpose_kernel(float* out, const float* w, int in, int n) {
  __shared__ float tile[kTile][kTile + 1];
  const int column = blockIdx.x * kTile, row = blockIdx.y * kTile;
  for (int r = threadIdx.y; r < kTile; r += blockDim.y)
    if (row + r < in && column + threadIdx.x < n)
      tile[r][threadIdx.x] = w[std::int64_t{row + r} * n + column + threadIdx.x];
  __syncthreads();
  for (int c = threadIdx.y; c < kTile; c += blockDim.y)
    if (column + c < n && row + threadIdx.x < in)
      out[std::int64_t{column + c} * in + row + threadIdx.x] = tile[threadIdx.x][c];
}

__global__ void copy_rows_kernel(float* to, const float* from, int width, int stride) {
  const std::int64_t row = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += kThreads) to[row * width + i] = from[row * stride + i];
}

// A block computes one head of one row; its scores lie in shared memory.
__global__ void attention_kernel(float* out, const float* q, const float* k, const float* v,
                                 int position, int size, int q_stride) {
  extern __shared__ float scores[];
  const int head = blockIdx.x, row = blockIdx.y, width = gridDim.x * size;
  const int seen = position + row + 1;
  const float scale = rsqrtf(static_cast<float>(size));
  q += std::int64_t{row} * q_stride + head * size;
  k += head * size;
  v += head * size;
  float most = -INFINITY, sum = 0;
  for (int s = threadIdx.x; s < seen; s += kThreads) {
    float score = 0;
    for (int i = 0; i < size; ++i) score += q[i] * k[std::int64_t{s} * width + i];
    scores[s] = scale * score;
    most = fmaxf(most, scores[s]);
  }
  most = over_block<Most>(most);
  for (int s = threadIdx.x; s < seen; s += kThreads) {
    scores[s] = expf(scores[s] - most);
    sum += scores[s];
  }
  sum = over_block<Sum>(sum);
  for (int i = threadIdx.x; i < size; i += kThreads) {
    float mixed = 0;
    for (int s = 0; s < seen; ++s) mixed += scores[s] * v[std::int64_t{s} * width + i];
    out[std::int64_t{row} * width + head * size + i] = mixed / sum;
  }
}

__global__ void gelu_kernel(float* out, const float* x, int count) {
  constexpr float kRootTwoByPi = 0.7978845608F;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float inner = kRootTwoByPi * (x[i] + 0.044715F * x[i] * x[i] * x[i]);
  out[i] = 0.5F * x[i] * (1 + tanhf(inner));
}

__global__ void argmax_kernel(std::int32_t* out, const float* x, int count) {
  float most = -INFINITY;
  for (int i = threadIdx.x; i < count; i += kThreads) most = fmaxf(most, x[i]);
  most = over_block<Most>(most);
  __shared__ int first;
  if (threadIdx.x == 0) first = count;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads)
    if (x[i] == most) atomicMin(&first, i);
  __syncthreads();
  if (threadIdx.x == 0) *out = first < count ? first : 0;
}

__global__ void pointwise_kernel(Pointwise what, float* out, const float* x, const float* y,
                                 float factor, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  switch (what) {
    case Pointwise::cube: out[i] = powf(x[i], 3.0F); break;
    case Pointwise::scale: out[i] = factor * x[i]; break;
    case Pointwise::add: out[i] = x[i] + y[i]; break;
    case Pointwise::tanh: out[i] = tanhf(x[i]); break;
    case Pointwise::one_plus: out[i] = 1 + x[i]; break;
    case Pointwise::multiply: out[i] = x[i] * y[i]; break;
  }
}

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin_kernel() {
  const std::uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < kSpinNanoseconds) {
  }
}

// What the recorder asks of the device; a failure shows in the engine's own next call.
const jd_device kDevice = {
    device_name(), nullptr,
    [](void*, void* to, const void* from, std::size_t bytes) {
      cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
    },
    [](void*) { cudaDeviceSynchronize(); }, [](void*) { spin_kernel<<<1, 1>>>(); }};

}  // namespace

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "memory on the GPU");
  return memory;
}

void release(void* memory) {
  cudaFree(memory);
}

void copy(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "a copy");
}

const char* device_name() {
  return "cuda";
}

const jd_device* device() {
  return &kDevice;
}

void embed(float* out, const std::int32_t* tokens, const float* wte, const float* wpe, int rows,
           int width, int position) {
  embed_kernel<<<rows, kThreads>>>(out, tokens, wte, wpe, width, position);
  launched("embed");
}

void layer_norm(float* out, const float* x, const float* weight, const float* bias, int rows,
                int width) {
  layer_norm_kernel<<<rows, kThreads>>>(out, x, weight, bias, width);
  launched("layer_norm");
}

void linear(float* out, const float* x, const float* w, const float* bias, int rows, int in,
            int n) {
  const dim3 grid(blocks(n, kThreads), blocks(rows, kRows));
  linear_kernel<<<grid, kThreads>>>(out, x, w, bias, rows, in, n);
  launched("linear");
}

void linear_transposed(float* out, const float* x, const float* w, const float* bias, int rows,
                       int in, int n) {
  const dim3 grid(blocks(n, kWarps), static_cast<unsigned>(rows));
  linear_transposed_kernel<<<grid, kThreads>>>(out, x, w, bias, in, n);
  launched("linear_transposed");
}

void transpose(float* out, const float* w, int in, int n) {
  const dim3 grid(blocks(n, kTile), blocks(in, kTile));
  transpose_kernel<<<grid, dim3(kTile, kTile / 4)>>>(out, w, in, n);
  launched("transpose");
}

void copy_rows(float* to, const float* from, int rows, int width, int stride) {
  copy_rows_kernel<<<rows, kThreads>>>(to, from, width, stride);
  launched("copy_rows");
}

void attention(float* out, const float* q, const float* k, const float* v, int rows, int position,
               int heads, int size, int q_stride) {
  const dim3 grid(static_cast<unsigned>(heads), static_cast<unsigned>(rows));
  const auto bytes = static_cast<std::size_t>(position + rows) * sizeof(float);
  attention_kernel<<<grid, kThreads, bytes>>>(out, q, k, v, position, size, q_stride);
  launched("attention");
}

void gelu(float* out, const float* x, int count) {
  gelu_kernel<<<blocks(count, kThreads), kThreads>>>(out, x, count);
  launched("gelu");
}

void add(float* x, const float* y, int count) {
  pointwise(Pointwise::add, x, x, y, 0, count);
}

void argmax(std::int32_t* out, const float* x, int count) {
  argmax_kernel<<<1, kThreads>>>(out, x, count);
  launched("argmax");
}

void pointwise(Pointwise what, float* out, const float* x, const float* y, float factor,
               int count) {
  pointwise_kernel<<<blocks(count, kThreads), kThreads>>>(what, out, x, y, factor, count);
  launched("pointwise");
}

}  // namespace engine::kernels
