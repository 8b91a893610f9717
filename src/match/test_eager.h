// A small eager interpreter that records what it computes, with real fingerprints and samples: what
// the tests and the benchmark of the matcher write their programs in. Every value is float32 in
// memory; other formats are rounded to and recorded as such.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "match/test_tensor.h"

namespace joulediff::match::testing {

class Eager {
 public:
  explicit Eager(Options options) : options_(options) {
    if (options.precision == Precision::tf32) setting("torch.float32_matmul_precision", "high");
    if (options.precision == Precision::bf16_matmul) {
      setting("torch.float32_matmul_precision", "medium");
    }
  }

  std::string module;  // of the operators that follow

  void setting(const std::string& key, const std::string& value) {
    run_.settings.push_back({key, value});
  }
  run::Run take() { return std::move(run_); }

  // The id of `a`; its fingerprint is that of its memory now.
  run::TensorId id(const Tensor& a) {
    const Memory& memory = *a.memory;
    const auto [it, fresh] =
        ids_.try_emplace({memory.id, memory.version, a.offset, a.shape, a.stride},
                         run::TensorId(run_.tensors.size()));
    if (!fresh) return it->second;
    run::Tensor tensor;
    tensor.storage = memory.id;
    tensor.version = memory.version;
    tensor.offset = a.offset;
    tensor.role = memory.role;
    tensor.shape = a.shape;
    tensor.stride = a.stride;
    Tensor squeezed{a.memory, {}, {}, a.offset};
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      if (a.shape[i] == 1 || a.stride[i] == 0) continue;
      squeezed.shape.push_back(a.shape[i]);
      squeezed.stride.push_back(a.stride[i]);
    }
    const std::vector<float> data = dense(squeezed);
    const std::vector<std::byte> bytes = encoded(data, memory.dtype);
    tensor.fingerprint = value::fingerprint(memory.dtype, bytes);
    const bool computed = memory.role == run::Role::computed || memory.role == run::Role::input;
    if (computed && (!options_.one_sample ||
                     sampled_.emplace(memory.id, memory.version, a.offset, data.size()).second)) {
      tensor.sample = value::sample(memory.dtype, bytes, squeezed.shape);
    }
    run_.tensors.push_back(std::move(tensor));
    return it->second;
  }

  void record(const std::string& name, const std::vector<Tensor>& in,
              const std::vector<Tensor>& out, bool view = false) {
    run::Operator op;
    op.name = "aten." + name;
    for (const Tensor& t : in) op.inputs.push_back(id(t));
    for (const Tensor& t : out) op.outputs.push_back(id(t));
    op.view = view;
    op.module = module;
    run_.operators.push_back(std::move(op));
  }

  Tensor make(const Shape& shape, std::vector<float> data, run::Role role = run::Role::computed,
              DType dtype = DType::float32) {
    if (options_.precision == Precision::bf16 && dtype == DType::float32) dtype = DType::bfloat16;
    const int bits = dtype == DType::bfloat16 ? 8 : dtype == DType::float16 ? 11 : 24;
    if (bits < 24) {
      for (float& x : data) x = rounded(x, bits);
    }
    auto memory = std::make_shared<Memory>(Memory{next_++, 0, std::move(data), role, dtype});
    return {memory, shape, dense_stride(shape), 0};
  }

  // Weights and inputs depend on the seed and their name alone.
  Tensor parameter(const std::string& name, const Shape& shape, double scale = 0.3) {
    return make(shape, normal(name, shape, scale), run::Role::parameter);
  }
  Tensor input(const std::string& name, const Shape& shape) {
    return make(shape, normal(name, shape, 1), run::Role::input);
  }
  Tensor tokens(const std::string& name, const Shape& shape, int limit) {
    std::mt19937 random = generator(name);
    std::vector<float> data(static_cast<std::size_t>(size_of(shape)));
    for (float& x : data) x = static_cast<float>(random() % static_cast<unsigned>(limit));
    return make(shape, std::move(data), run::Role::input, DType::int64);
  }
  // What an operator makes of nothing but numbers.
  Tensor constant(const Shape& shape, const std::function<float(std::size_t)>& at,
                  DType dtype = DType::float32) {
    std::vector<float> data(static_cast<std::size_t>(size_of(shape)));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = at(i);
    Tensor t = make(shape, std::move(data), run::Role::constant, dtype);
    record("full", {}, {t});
    return t;
  }

  template <class F>
  Tensor unary(const std::string& name, const Tensor& a, F f) {
    std::vector<float> data = dense(a);
    for (float& x : data) x = f(x);
    Tensor out = make(a.shape, std::move(data), run::Role::computed, a.memory->dtype);
    record(name, {a}, {out});
    return out;
  }
  // With broadcasting.
  template <class F>
  Tensor binary(const std::string& name, const Tensor& a, const Tensor& b, F f) {
    Shape shape(std::max(a.shape.size(), b.shape.size()), 1);
    for (const Tensor* t : {&a, &b}) {
      for (std::size_t i = 0; i < t->shape.size(); ++i) {
        std::int64_t& n = shape[shape.size() - t->shape.size() + i];
        n = std::max(n, t->shape[i]);
      }
    }
    const std::vector<float> x = dense(broadcast(a, shape));
    const std::vector<float> y = dense(broadcast(b, shape));
    std::vector<float> data(x.size());
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = f(x[i], y[i]);
    Tensor out = make(shape, std::move(data), run::Role::computed, a.memory->dtype);
    record(name, {a, b}, {out});
    return out;
  }
  Tensor add(const Tensor& a, const Tensor& b) { return binary("add", a, b, std::plus<>()); }
  Tensor sub(const Tensor& a, const Tensor& b) { return binary("sub", a, b, std::minus<>()); }
  Tensor mul(const Tensor& a, const Tensor& b) { return binary("mul", a, b, std::multiplies<>()); }
  Tensor scale(const Tensor& a, float k) {
    return unary("mul.scalar", a, [k](float x) { return x * k; });
  }
  Tensor clone(const Tensor& a) {
    return unary("clone", a, [](float x) { return x; });
  }
  Tensor cast(const Tensor& a, DType dtype) {
    Tensor out = make(a.shape, dense(a), run::Role::computed, dtype);
    record("_to_copy", {a}, {out});
    return out;
  }

  // [.., m, k] x [.., k, n] with equal batch axes, or x [k, n].
  Tensor matmul(const Tensor& a, const Tensor& b, const std::string& name = "bmm") {
    Tensor out = product(a, b, nullptr);
    record(name, {a, b}, {out});
    return out;
  }
  Tensor addmm(const Tensor& bias, const Tensor& x, const Tensor& w) {
    Tensor out = product(x, w, &bias);
    record("addmm", {bias, x, w}, {out});
    return out;
  }
  Tensor embedding(const Tensor& table, const Tensor& index) {
    const std::vector<float> rows = dense(table);
    const auto width = static_cast<std::size_t>(table.shape[1]);
    std::vector<float> data;
    for (const float row : dense(index)) {
      const auto from =
          rows.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(width);
      data.insert(data.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    Shape shape = index.shape;
    shape.push_back(table.shape[1]);
    Tensor out = make(shape, std::move(data));
    record("embedding", {table, index}, {out});
    return out;
  }
  Tensor softmax(const Tensor& a) {
    Tensor out = softmax_of(a);
    record("softmax", {a}, {out});
    return out;
  }
  // y, mean, 1 / deviation.
  std::vector<Tensor> layer_norm(const Tensor& x, const Tensor& w, const Tensor& b) {
    std::vector<Tensor> out = norm_of(x, w, b);
    record("native_layer_norm", {x, w, b}, out);
    return out;
  }
  // x + y and its norm in one operator.
  std::vector<Tensor> add_norm(const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
    std::vector<float> sum = dense(x);
    const std::vector<float> other = dense(y);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
    Tensor h = make(x.shape, std::move(sum));
    Tensor normed = norm_of(h, w, b)[0];
    record("fused_add_norm", {x, y, w, b}, {h, normed});
    return {h, normed};
  }
  // One operator; q, k, v: [.., tokens, width of a head].
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
    const Tensor kt = transposed(k, k.shape.size() - 2, k.shape.size() - 1);
    Tensor scores = product(q, kt, nullptr);
    const auto keys = static_cast<std::size_t>(k.shape[k.shape.size() - 2]);
    const auto queries = static_cast<std::size_t>(q.shape[q.shape.size() - 2]);
    const float root = std::sqrt(static_cast<float>(q.shape.back()));
    for (std::size_t i = 0; i < scores.memory->data.size(); ++i) {
      const bool masked = causal && i % keys > (i / keys) % queries;
      scores.memory->data[i] = masked ? -INFINITY : scores.memory->data[i] / root;
    }
    Tensor out = product(softmax_of(scores), v, nullptr);
    record("scaled_dot_product_attention", {q, k, v}, {out});
    return out;
  }
  Tensor cat(const std::vector<Tensor>& parts, std::size_t axis) {
    Shape shape = parts[0].shape;
    shape[axis] = 0;
    for (const Tensor& t : parts) shape[axis] += t.shape[axis];
    Tensor out = make(shape, std::vector<float>(static_cast<std::size_t>(size_of(shape))));
    std::int64_t begin = 0;
    for (const Tensor& t : parts) {
      assign(sliced(out, axis, begin, begin + t.shape[axis]), dense(t));
      begin += t.shape[axis];
    }
    record("cat", parts, {out});
    return out;
  }
  Tensor sum(const Tensor& a) {
    const std::vector<float> data = dense(a);
    Tensor out = make({}, {std::accumulate(data.begin(), data.end(), 0.0F)});
    record("sum", {a}, {out});
    return out;
  }

  // Views.
  Tensor view(const Tensor& a, const Shape& shape) {
    Tensor out{a.memory, shape, dense_stride(shape), a.offset};
    record("view", {a}, {out}, true);
    return out;
  }
  Tensor transpose(const Tensor& a, std::size_t i, std::size_t j) {
    Tensor out = transposed(a, i, j);
    record("transpose", {a}, {out}, true);
    return out;
  }
  Tensor permute(const Tensor& a, const std::vector<std::size_t>& axes) {
    Tensor out{a.memory, {}, {}, a.offset};
    for (const std::size_t i : axes) {
      out.shape.push_back(a.shape[i]);
      out.stride.push_back(a.stride[i]);
    }
    record("permute", {a}, {out}, true);
    return out;
  }
  Tensor slice(const Tensor& a, std::size_t axis, std::int64_t begin, std::int64_t end) {
    Tensor out = sliced(a, axis, begin, end);
    record("slice", {a}, {out}, true);
    return out;
  }
  std::vector<Tensor> split(const Tensor& a, std::size_t axis, std::int64_t pieces) {
    std::vector<Tensor> out;
    const std::int64_t n = a.shape[axis] / pieces;
    for (std::int64_t i = 0; i < pieces; ++i) out.push_back(sliced(a, axis, i * n, (i + 1) * n));
    record("split", {a}, out, true);
    return out;
  }
  // A view of a dense tensor, else a copy first.
  Tensor reshape(const Tensor& a, const Shape& shape) {
    return view(a.stride == dense_stride(a.shape) ? a : clone(a), shape);
  }

  // In place: the memory gets a new version, which every handle shows from then on.
  void add_(const Tensor& a, const Tensor& b, float k = 1) {
    const run::TensorId before = id(a);
    const run::TensorId other = id(b);
    accumulate(a, b, k);
    record_in_place("add_", {before, other}, {a});
  }
  void mul_(const Tensor& a, float k) {
    const run::TensorId before = id(a);
    std::vector<float> data = dense(a);
    for (float& x : data) x *= k;
    write(a, data);
    record_in_place("mul_", {before}, {a});
  }
  void copy_(const Tensor& to, const Tensor& from) {
    const run::TensorId other = id(from);
    write(to, dense(from));
    record_in_place("copy_", {other}, {to});
  }
  void foreach_add_(const std::vector<Tensor>& a, const std::vector<Tensor>& b, float k) {
    std::vector<run::TensorId> in;
    for (const Tensor& t : a) in.push_back(id(t));
    for (const Tensor& t : b) in.push_back(id(t));
    for (std::size_t i = 0; i < a.size(); ++i) accumulate(a[i], b[i], k);
    record_in_place("_foreach_add_", in, a);
  }
  void foreach_mul_(const std::vector<Tensor>& a, float k) {
    std::vector<run::TensorId> in;
    for (const Tensor& t : a) in.push_back(id(t));
    for (const Tensor& t : a) {
      std::vector<float> data = dense(t);
      for (float& x : data) x *= k;
      write(t, data);
    }
    record_in_place("_foreach_mul_", in, a);
  }

 private:
  std::mt19937 generator(const std::string& name) const {
    std::seed_seq seed(name.begin(), name.end());
    std::mt19937 random(seed);
    return std::mt19937(random() + options_.seed);
  }
  std::vector<float> normal(const std::string& name, const Shape& shape, double scale) const {
    std::mt19937 random = generator(name);
    std::normal_distribution<double> of(0, scale);
    std::vector<float> data(static_cast<std::size_t>(size_of(shape)));
    for (float& x : data) x = static_cast<float>(of(random));
    return data;
  }
  static std::vector<std::byte> encoded(const std::vector<float>& data, DType dtype);
  static Tensor transposed(const Tensor& a, std::size_t i, std::size_t j) {
    Tensor out = a;
    std::swap(out.shape[i], out.shape[j]);
    std::swap(out.stride[i], out.stride[j]);
    return out;
  }
  static Tensor sliced(const Tensor& a, std::size_t axis, std::int64_t begin, std::int64_t end) {
    Tensor out = a;
    out.offset += begin * a.stride[axis];
    out.shape[axis] = end - begin;
    return out;
  }
  static Tensor broadcast(const Tensor& a, const Shape& shape) {
    Tensor out{a.memory, shape, Shape(shape.size(), 0), a.offset};
    const std::size_t lead = shape.size() - a.shape.size();
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      if (a.shape[i] == shape[lead + i]) out.stride[lead + i] = a.stride[i];
    }
    return out;
  }
  static void assign(const Tensor& to, const std::vector<float>& data) {
    std::size_t i = 0;
    for_each_place(to, [&](std::size_t p) { to.memory->data[p] = data[i++]; });
  }
  void write(const Tensor& to, std::vector<float> data) {
    if (to.memory->dtype == DType::bfloat16) {
      for (float& x : data) x = rounded(x, 8);
    }
    assign(to, data);
    ++to.memory->version;
    to.memory->role = run::Role::computed;
  }
  void accumulate(const Tensor& a, const Tensor& b, float k) {
    std::vector<float> data = dense(a);
    const std::vector<float> other = dense(b);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] += k * other[i];
    write(a, data);
  }
  void record_in_place(const std::string& name, const std::vector<run::TensorId>& in,
                       const std::vector<Tensor>& out) {
    record(name, {}, out);
    run_.operators.back().inputs = in;
  }
  Tensor softmax_of(const Tensor& a);
  std::vector<Tensor> norm_of(const Tensor& x, const Tensor& w, const Tensor& b);
  Tensor product(const Tensor& a, const Tensor& b, const Tensor* bias);

  using Key = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, Shape, Shape>;
  Options options_;
  run::Run run_;
  std::uint64_t next_ = 1;
  std::map<Key, run::TensorId> ids_;
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::size_t>> sampled_;
};

}  // namespace joulediff::match::testing

#include "match/test_eager_compute.h"
