// The arithmetic: kernels.cpp on the processor, ../engine_cuda/kernels.cu on a GPU. Matrices are
// rows of floats; nothing here knows of models or of recording.
#pragma once

#include <cstddef>
#include <cstdint>

#include "joulediff/record.h"

namespace engine::kernels {

// The memory that the kernels compute in.
void* allocate(std::size_t bytes);
void release(void* memory);
void copy(void* to, const void* from, std::size_t bytes);  // to, from or within it
const char* device_name();
const jd_device* device();  // for the recorder; null: the host

// out[r] = wte[tokens[r]] + wpe[position + r]
void embed(float* out, const std::int32_t* tokens, const float* wte, const float* wpe, int rows,
           int width, int position);
void layer_norm(float* out, const float* x, const float* weight, const float* bias, int rows,
                int width);
// out = x w + bias; w is [in, n]
void linear(float* out, const float* x, const float* w, const float* bias, int rows, int in, int n);
// out = x w^T (+ bias); w is [n, in]; bias may be null
void linear_transposed(float* out, const float* x, const float* w, const float* bias, int rows,
                       int in, int n);
// out = w^T; w is [in, n]
void transpose(float* out, const float* w, int in, int n);
// Rows of `from`, which lie `stride` floats apart, one after another.
void copy_rows(float* to, const float* from, int rows, int width, int stride);
// Causal attention of `rows` queries, the first at `position`, over the keys and values of all
// positions until then. Queries lie `q_stride` apart; keys and values are [position, heads * size].
void attention(float* out, const float* q, const float* k, const float* v, int rows, int position,
               int heads, int size, int q_stride);
void gelu(float* out, const float* x, int count);  // the tanh form
void add(float* x, const float* y, int count);     // x += y
void argmax(std::int32_t* out, const float* x, int count);

enum class Pointwise { cube, scale, add, tanh, one_plus, multiply };
// scale: out = factor x; add, multiply: with y; the others of x alone
void pointwise(Pointwise what, float* out, const float* x, const float* y, float factor, int count);

}  // namespace engine::kernels
