// The engine's operators: each describes itself to the recorder and runs its kernel.
#pragma once

#include "kernels.h"
#include "recorder.h"

namespace engine {

// A matrix of floats in the kernels' memory; `stride`: floats from one row to the next.
struct Matrix {
  float* data = nullptr;
  int rows = 0, columns = 0, stride = 0;
  bool weight = false;

  int count() const { return rows * columns; }
  Matrix part(int first_row, int part_rows) const {
    return {data + static_cast<std::ptrdiff_t>(first_row) * stride, part_rows, columns, stride,
            weight};
  }
  Matrix slice(int first_column, int part_columns) const {
    return {data + first_column, rows, part_columns, stride, weight};
  }
};

struct Tokens {
  std::int32_t* data = nullptr;
  int count = 0;
};

class Operators {
 public:
  using At = std::source_location;

  explicit Operators(const Recorder& recorder) : recorder_(recorder) {}
  const Recorder& recorder() const { return recorder_; }

  void embed(const Scope&, Matrix out, Tokens tokens, Matrix wte, Matrix wpe, int position,
             At at = At::current()) const;
  void layer_norm(const Scope&, Matrix out, Matrix x, Matrix weight, Matrix bias,
                  At at = At::current()) const;
  void linear(const Scope&, Matrix out, Matrix x, Matrix weight, Matrix bias,
              At at = At::current()) const;
  void linear_transposed(const Scope&, Matrix out, Matrix x, Matrix weight, const Matrix* bias,
                         At at = At::current()) const;
  void transpose(const Scope&, Matrix out, Matrix x, At at = At::current()) const;
  void copy(const Scope&, Matrix out, Matrix x, At at = At::current()) const;
  void attention(const Scope&, Matrix out, Matrix q, Matrix k, Matrix v, int heads, int position,
                 At at = At::current()) const;
  void gelu(const Scope&, Matrix out, Matrix x, At at = At::current()) const;
  void add(const Scope&, Matrix x, Matrix y, At at = At::current()) const;
  void argmax(const Scope&, Tokens out, Matrix x, At at = At::current()) const;

  // `y` and `factor` where `what` needs them.
  void pointwise(const Scope&, kernels::Pointwise what, Matrix out, Matrix x, Matrix y = {},
                 float factor = 0, At at = At::current()) const;

 private:
  const Recorder& recorder_;
};

}  // namespace engine
