#include "operators.h"

namespace engine {
namespace {

const char* name(kernels::Pointwise what) {
  switch (what) {
    case kernels::Pointwise::cube: return "engine.cube";
    case kernels::Pointwise::scale: return "engine.scale";
    case kernels::Pointwise::add: return "engine.sum";
    case kernels::Pointwise::tanh: return "engine.tanh";
    case kernels::Pointwise::one_plus: return "engine.one_plus";
    case kernels::Pointwise::multiply: return "engine.multiply";
  }
  return "engine.pointwise";
}

// A vector is a matrix of one row.
jd_value value(const Matrix& m) {
  jd_value v{};
  v.data = m.data;
  v.dtype = JD_FLOAT32;
  v.role = m.weight ? JD_PARAMETER : JD_COMPUTED;
  v.dims = 2;
  v.shape[0] = m.rows;
  v.shape[1] = m.columns;
  v.stride[0] = m.stride;
  v.stride[1] = 1;
  return v;
}

jd_value value(const Tokens& tokens) {
  jd_value v{};
  v.data = tokens.data;
  v.dtype = JD_INT32;
  v.dims = 1;
  v.shape[0] = tokens.count;
  return v;
}

// The columns of a matrix as [heads, size].
jd_value value(const Matrix& m, int heads) {
  jd_value v = value(m);
  v.dims = 3;
  v.shape[1] = heads;
  v.shape[2] = m.columns / heads;
  v.stride[1] = v.shape[2];
  v.stride[2] = 1;
  return v;
}

}  // namespace

void Operators::embed(const Scope& scope, Matrix out, Tokens tokens, Matrix wte, Matrix wpe,
                      int position, At at) const {
  recorder_.run({"engine.embed", scope, at, "{}"}, {value(tokens), value(wte), value(wpe)},
                {value(out)}, [&] {
                  kernels::embed(out.data, tokens.data, wte.data, wpe.data, out.rows, out.columns,
                                 position);
                });
}

void Operators::layer_norm(const Scope& scope, Matrix out, Matrix x, Matrix weight, Matrix bias,
                           At at) const {
  recorder_.run(
      {"engine.layer_norm", scope, at, "{}"}, {value(x), value(weight), value(bias)}, {value(out)},
      [&] { kernels::layer_norm(out.data, x.data, weight.data, bias.data, x.rows, x.columns); });
}

void Operators::linear(const Scope& scope, Matrix out, Matrix x, Matrix weight, Matrix bias,
                       At at) const {
  recorder_.run({"engine.linear", scope, at, "{}"}, {value(x), value(weight), value(bias)},
                {value(out)}, [&] {
                  kernels::linear(out.data, x.data, weight.data, bias.data, x.rows, x.columns,
                                  out.columns);
                });
}

void Operators::linear_transposed(const Scope& scope, Matrix out, Matrix x, Matrix weight,
                                  const Matrix* bias, At at) const {
  const auto run = [&] {
    kernels::linear_transposed(out.data, x.data, weight.data, bias ? bias->data : nullptr, x.rows,
                               x.columns, out.columns);
  };
  const Call call{"engine.linear_transposed", scope, at, "{}"};
  if (bias != nullptr)
    recorder_.run(call, {value(x), value(weight), value(*bias)}, {value(out)}, run);
  else
    recorder_.run(call, {value(x), value(weight)}, {value(out)}, run);
}

void Operators::transpose(const Scope& scope, Matrix out, Matrix x, At at) const {
  recorder_.run({"engine.transpose", scope, at, "{}"}, {value(x)}, {value(out)},
                [&] { kernels::transpose(out.data, x.data, x.rows, x.columns); });
}

void Operators::copy(const Scope& scope, Matrix out, Matrix x, At at) const {
  recorder_.run({"engine.copy", scope, at, "{}"}, {value(x)}, {value(out)},
                [&] { kernels::copy_rows(out.data, x.data, x.rows, x.columns, x.stride); });
}

void Operators::attention(const Scope& scope, Matrix out, Matrix q, Matrix k, Matrix v, int heads,
                          int position, At at) const {
  recorder_.run({"engine.attention", scope, at, R"({"causal":true})"},
                {value(q, heads), value(k, heads), value(v, heads)}, {value(out)}, [&] {
                  kernels::attention(out.data, q.data, k.data, v.data, q.rows, position, heads,
                                     q.columns / heads, q.stride);
                });
}

void Operators::gelu(const Scope& scope, Matrix out, Matrix x, At at) const {
  recorder_.run({"engine.gelu", scope, at, R"({"approximate":"tanh"})"}, {value(x)}, {value(out)},
                [&] { kernels::gelu(out.data, x.data, x.count()); });
}

void Operators::add(const Scope& scope, Matrix x, Matrix y, At at) const {
  recorder_.run({"engine.add", scope, at, "{}"}, {value(x), value(y)}, {value(x)},
                [&] { kernels::add(x.data, y.data, x.count()); });
}

void Operators::argmax(const Scope& scope, Tokens out, Matrix x, At at) const {
  recorder_.run({"engine.argmax", scope, at, "{}"}, {value(x)}, {value(out)},
                [&] { kernels::argmax(out.data, x.data, x.count()); });
}

void Operators::pointwise(const Scope& scope, kernels::Pointwise what, Matrix out, Matrix x,
                          Matrix y, float factor, At at) const {
  const auto run = [&] { kernels::pointwise(what, out.data, x.data, y.data, factor, x.count()); };
  const Call call{name(what), scope, at, "{}"};
  if (y.data != nullptr)
    recorder_.run(call, {value(x), value(y)}, {value(out)}, run);
  else
    recorder_.run(call, {value(x)}, {value(out)}, run);
}

}  // namespace engine
