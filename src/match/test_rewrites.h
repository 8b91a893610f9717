// Random programs and their semantics-preserving rewrites: a source is a list of instructions on
// matrices of one shape, and a lowering writes it as operators in one of many ways. Each operator
// carries, as its module, the instructions it is there for, so that what belongs together is known.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "match/test_eager.h"

namespace joulediff::match::testing {

constexpr std::int64_t kRows = 6, kWidth = 10;

class Lot {
 public:
  explicit Lot(std::uint32_t seed) : random_(seed) {}
  std::uint32_t below(std::size_t end) { return static_cast<std::uint32_t>(random_() % end); }
  bool once_in(std::uint32_t n) { return below(n) == 0; }

 private:
  std::mt19937 random_;
};

enum class Kind { linear, add, mul, gelu, softmax, norm, gate };

// Value 0 is the program's input, value i + 1 what instruction i makes.
struct Instruction {
  Kind kind;
  std::vector<std::uint32_t> inputs;
};
using Source = std::vector<Instruction>;

inline Source random_source(Lot& lot) {
  constexpr Kind kKinds[] = {Kind::linear,  Kind::linear, Kind::add,  Kind::mul, Kind::gelu,
                             Kind::softmax, Kind::norm,   Kind::gate, Kind::add};
  Source source;
  const std::uint32_t size = 6 + lot.below(20);
  std::vector<bool> used(1, true);
  const auto recent = [&] {  // mostly: programs are deep
    const auto values = static_cast<std::uint32_t>(source.size() + 1);
    const std::uint32_t v =
        lot.once_in(4) ? lot.below(values) : values - 1 - lot.below(std::min(values, 3u));
    return v;
  };
  // Work done twice is one work: no two instructions are alike.
  std::set<std::pair<Kind, std::vector<std::uint32_t>>> known;
  const auto add = [&](Kind kind, std::vector<std::uint32_t> inputs) {
    std::ranges::sort(inputs);
    const bool own_weights = kind == Kind::linear || kind == Kind::gate;
    if (inputs.size() == 2 && inputs[0] == inputs[1]) return;
    if (!own_weights && !known.emplace(kind, inputs).second) return;
    for (const std::uint32_t v : inputs) used[v] = true;
    source.push_back({kind, std::move(inputs)});
    used.push_back(false);
  };
  for (std::uint32_t i = 0; i < size; ++i) {
    const Kind kind = kKinds[lot.below(std::size(kKinds))];
    const bool two = kind == Kind::add || kind == Kind::mul;
    const std::uint32_t first = recent();
    add(kind, two ? std::vector{first, recent()} : std::vector{first});
  }
  // Everything leads to the last value.
  for (std::uint32_t v = 1; v < source.size() + 1 && source.size() < 2u * size; ++v) {
    const auto last = static_cast<std::uint32_t>(source.size());
    if (used[v] || v == last) continue;
    add(Kind::add, {last, v});
  }
  return source;
}

// The instructions whose values depend on that of `changed`, and that one.
inline std::set<std::uint32_t> downstream(const Source& source, std::uint32_t changed) {
  std::set<std::uint32_t> found{changed};
  for (std::uint32_t i = changed + 1; i < source.size(); ++i) {
    for (const std::uint32_t v : source[i].inputs) {
      if (v > 0 && found.contains(v - 1)) found.insert(i);
    }
  }
  return found;
}

class Lowering {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  // `changed`: the value of that instruction is wrong; `mended`: and is put right before anything
  // uses it.
  Lowering(const Source& source, std::uint32_t seed, std::uint32_t changed = kNone,
           bool mended = false)
      : source_(source),
        seed_(seed),
        lot_(seed),
        changed_(changed),
        mended_(mended),
        e_(options()) {}

  run::Run run() {
    values_.assign(source_.size() + 1, {});
    values_[0] = e_.input("x", {kRows, kWidth});
    std::vector<bool> done(source_.size() + 1, false);
    done[0] = true;
    std::vector<std::uint32_t> left(source_.size());
    std::iota(left.begin(), left.end(), 0u);
    while (!left.empty()) {  // any order in which inputs come first
      std::vector<std::uint32_t> ready;
      for (const std::uint32_t i : left) {
        if (std::ranges::all_of(source_[i].inputs, [&](std::uint32_t v) { return done[v]; }))
          ready.push_back(i);
      }
      const std::uint32_t i = ready[lot_.below(ready.size())];
      values_[i + 1] = made(i);
      done[i + 1] = true;
      std::erase(left, i);
      extra();
    }
    return e_.take();
  }

 private:
  Options options() {
    Options o;
    o.backwards = lot_.once_in(2);
    return o;
  }
  void here(std::uint32_t i) { e_.module = std::to_string(i); }

  Tensor made(std::uint32_t i) {
    std::vector<Tensor> in;
    for (const std::uint32_t v : source_[i].inputs) in.push_back(given(v));
    here(i);
    Tensor out = lowered(i, in);
    if (i != changed_) return out;
    if (mended_) return e_.scale(e_.scale(out, 8), 0.125F);
    return e_.unary("mistake", out, [](float a) { return 1.25F * a + 0.1F * a * a; });
  }

  // A value as its reader gets it: itself, computed again, or copied.
  Tensor given(std::uint32_t v) {
    if (v > 0 && v - 1 != changed_ && lot_.once_in(14)) {
      std::vector<Tensor> in;
      for (const std::uint32_t w : source_[v - 1].inputs) in.push_back(values_[w]);
      here(v - 1);
      return lowered(v - 1, in);
    }
    const Tensor& x = values_[v];
    e_.module = "extra";
    switch (lot_.below(16)) {
      case 0: return e_.clone(x);
      case 1: return e_.unary("add.scalar", x, [](float a) { return a + 0; });
      case 2: return e_.transpose(e_.clone(e_.transpose(x, 0, 1)), 0, 1);
      case 3: return e_.view(e_.reshape(x, {kRows * kWidth}), x.shape);
      default: return x;
    }
  }

  // Work that nobody needs.
  void extra() {
    if (!lot_.once_in(10)) return;
    e_.module = "extra";
    const Tensor& x = values_[lot_.below(2) == 0 ? 0 : last_made()];
    e_.unary("sin", x, [](float a) { return std::sin(a); });
  }
  std::size_t last_made() const {
    std::size_t v = values_.size() - 1;
    while (!values_[v].memory) --v;
    return v;
  }

  // The same way each time: what is computed again is computed alike.
  Tensor lowered(std::uint32_t i, const std::vector<Tensor>& in) {
    way_ = Lot(seed_ * 1000003u + i);
    const std::string name = std::to_string(i);
    const Tensor& x = in[0];
    switch (source_[i].kind) {
      case Kind::linear: return linear(x, "w" + name);
      case Kind::add: return sum(in);
      case Kind::mul: return way_.once_in(2) ? e_.mul(x, in[1]) : e_.mul(in[1], x);
      case Kind::gelu: return gelu(x);
      case Kind::softmax: return softmax(x);
      case Kind::norm: return norm(x, name);
      case Kind::gate: return gate(x, name);
    }
    return x;
  }

  Tensor weight(const std::string& name) { return e_.parameter(name, {kWidth, kWidth}); }
  Tensor bias(const std::string& name) { return e_.parameter(name + ".b", {kWidth}); }

  Tensor linear(const Tensor& x, const std::string& name) {
    const Tensor w = weight(name), b = bias(name);
    switch (way_.below(3)) {
      case 0: return e_.addmm(b, x, w);
      case 1: return e_.add(e_.matmul(x, w), b);
      default:  // (W' x')' + b
        return e_.add(e_.transpose(e_.matmul(e_.transpose(w, 0, 1), e_.transpose(x, 0, 1)), 0, 1),
                      b);
    }
  }

  Tensor sum(const std::vector<Tensor>& in) {
    switch (way_.below(3)) {
      case 0: return e_.add(in[0], in[1]);
      case 1: return e_.add(in[1], in[0]);
      default: {
        const std::string here = std::exchange(e_.module, "extra");
        const Tensor out = e_.clone(in[0]);
        e_.module = here;
        e_.add_(out, in[1]);
        return out;
      }
    }
  }

  Tensor gelu(const Tensor& x) {
    constexpr float kRoot = 0.7978845608F, kCube = 0.044715F;
    if (way_.once_in(2)) {
      return e_.unary("gelu", x, [](float a) {
        return 0.5F * a * (1 + std::tanh(kRoot * (a + kCube * a * a * a)));
      });
    }
    const Tensor cube = e_.mul(e_.mul(x, x), x);
    const Tensor inner = e_.scale(e_.add(x, e_.scale(cube, kCube)), kRoot);
    const Tensor th = e_.unary("tanh", inner, [](float a) { return std::tanh(a); });
    return e_.mul(e_.scale(x, 0.5F), e_.unary("add.scalar", th, [](float a) { return a + 1; }));
  }

  // One number of each row.
  template <class F>
  Tensor of_rows(const std::string& name, const Tensor& x, F f) {
    const std::vector<float> data = dense(x);
    std::vector<float> out;
    for (auto row = data.begin(); row != data.end(); row += kWidth)
      out.push_back(f(std::vector<float>(row, row + kWidth)));
    Tensor made = e_.make({kRows, 1}, std::move(out));
    e_.record(name, {x}, {made});
    return made;
  }

  Tensor softmax(const Tensor& x) {
    if (way_.once_in(2)) return e_.softmax(x);
    const Tensor top =
        of_rows("amax", x, [](const auto& r) { return *std::ranges::max_element(r); });
    const Tensor powers = e_.unary("exp", e_.sub(x, top), [](float a) { return std::exp(a); });
    const Tensor total = of_rows(
        "sum", powers, [](const auto& r) { return std::accumulate(r.begin(), r.end(), 0.0F); });
    return e_.binary("div", powers, total, std::divides<>());
  }

  Tensor norm(const Tensor& x, const std::string& name) {
    const Tensor w = e_.parameter("n" + name, {kWidth}, 1), b = bias("n" + name);
    if (way_.once_in(2)) return e_.layer_norm(x, w, b)[0];
    const auto mean = [](const auto& r) {
      return static_cast<float>(std::accumulate(r.begin(), r.end(), 0.0) / kWidth);
    };
    const Tensor centred = e_.sub(x, of_rows("mean", x, mean));
    const Tensor inverse = e_.unary("rsqrt", of_rows("mean", e_.mul(centred, centred), mean),
                                    [](float a) { return 1 / std::sqrt(a + 1e-5F); });
    return e_.add(e_.mul(e_.mul(centred, inverse), w), b);
  }

  // gelu(x W1) * (x W2), the products apart or as one.
  Tensor gate(const Tensor& x, const std::string& name) {
    const Tensor one = weight("g" + name), two = weight("h" + name);
    if (way_.once_in(2)) return e_.mul(gelu(e_.matmul(x, one)), e_.matmul(x, two));
    std::vector<float> both;
    const std::vector<float> left = dense(one), right = dense(two);
    for (std::int64_t row = 0; row < kWidth; ++row) {
      both.insert(both.end(), left.begin() + row * kWidth, left.begin() + (row + 1) * kWidth);
      both.insert(both.end(), right.begin() + row * kWidth, right.begin() + (row + 1) * kWidth);
    }
    const Tensor fused = e_.make({kWidth, 2 * kWidth}, std::move(both), run::Role::parameter);
    const std::vector<Tensor> halves = e_.split(e_.matmul(x, fused), 1, 2);
    return e_.mul(gelu(halves[0]), halves[1]);
  }

  const Source& source_;
  std::uint32_t seed_;
  Lot lot_, way_{0};
  std::uint32_t changed_;
  bool mended_;
  Eager e_;
  std::vector<Tensor> values_;
};

}  // namespace joulediff::match::testing
