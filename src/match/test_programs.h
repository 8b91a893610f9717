// The same programs in several styles, written in the interpreter of test_eager.h.
#pragma once

#include "match/test_eager.h"

namespace joulediff::match::testing {

// addmm_hnd: fused qkv by addmm, heads before tokens, mask of -inf, gelu in pieces. separate_nhd:
// separate q, k, v, heads outermost, fused gelu. fused: fused qkv, attention in one operator,
// additions fused with the norm that follows.
enum class Style { addmm_hnd, separate_nhd, fused };

struct GptSize {
  std::int64_t layers = 2, tokens = 7, width = 24, heads = 3, batch = 2;
};

struct Gpt {
  Eager e;
  Style style;
  GptSize s;

  Tensor gelu(const Tensor& x) {
    const auto fused = [](float v) {
      return 0.5F * v * (1 + std::tanh(0.7978845608F * (v + 0.044715F * v * v * v)));
    };
    if (style != Style::addmm_hnd) return e.unary("gelu", x, fused);
    const Tensor cube = e.unary("pow", x, [](float v) { return v * v * v; });
    const Tensor inner = e.scale(e.add(x, e.scale(cube, 0.044715F)), 0.7978845608F);
    const Tensor curve = e.unary("tanh", inner, [](float v) { return std::tanh(v); });
    const Tensor shifted = e.unary("add.scalar", curve, [](float v) { return v + 1; });
    return e.mul(e.scale(x, 0.5F), shifted);
  }

  Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
    if (style == Style::separate_nhd) return e.add(e.matmul(x, w, "mm"), bias);
    Shape shape = x.shape;
    const Tensor flat = e.view(x, {size_of(x.shape) / x.shape.back(), x.shape.back()});
    shape.back() = w.shape.back();
    return e.view(e.addmm(bias, flat, w), shape);
  }

  Tensor heads(const Tensor& x, bool outermost) {
    const Tensor split = e.view(dense_or_clone(x), {s.batch, s.tokens, s.heads, s.width / s.heads});
    return outermost ? e.permute(split, {2, 0, 1, 3}) : e.transpose(split, 1, 2);
  }
  Tensor dense_or_clone(const Tensor& x) {
    return x.stride == dense_stride(x.shape) ? x : e.clone(x);
  }

  Tensor attend(const Tensor& x, const std::string& name) {
    const Tensor w = e.parameter(name + ".qkv", {s.width, 3 * s.width});
    const Tensor bias = e.parameter(name + ".qkv.bias", {3 * s.width});
    std::vector<Tensor> qkv;
    if (style == Style::separate_nhd) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const Tensor part = e.slice(w, 1, i * s.width, (i + 1) * s.width);
        qkv.push_back(linear(x, part, e.slice(bias, 0, i * s.width, (i + 1) * s.width)));
      }
    } else {
      qkv = e.split(linear(x, w, bias), 2, 3);
    }
    const bool outermost = style == Style::separate_nhd;
    const Tensor q = heads(qkv[0], outermost), k = heads(qkv[1], outermost),
                 v = heads(qkv[2], outermost);
    Tensor y = style == Style::fused ? e.attention(q, k, v, true) : attend_in_pieces(q, k, v);
    y = outermost ? e.permute(y, {1, 2, 0, 3}) : e.transpose(y, 1, 2);
    const Tensor flat = e.reshape(y, {s.batch, s.tokens, s.width});
    return linear(flat, e.parameter(name + ".out", {s.width, s.width}),
                  e.parameter(name + ".out.bias", {s.width}));
  }

  Tensor attend_in_pieces(const Tensor& q, const Tensor& k, const Tensor& v) {
    const std::int64_t d = s.width / s.heads, n = s.heads * s.batch;
    const auto flat = [&](const Tensor& t) { return e.view(e.clone(t), {n, s.tokens, d}); };
    const float factor = 1 / std::sqrt(static_cast<float>(d));
    const Tensor scaled = style == Style::separate_nhd ? e.scale(q, factor) : q;
    Tensor scores = e.matmul(flat(scaled), e.transpose(flat(k), 1, 2));
    if (style != Style::separate_nhd) scores = e.scale(scores, factor);
    const std::int64_t t = s.tokens;
    const Tensor mask = e.constant({t, t}, [t](std::size_t i) {
      const auto at = static_cast<std::int64_t>(i);
      return at % t > at / t ? -INFINITY : 0.0F;
    });
    const Tensor weights = e.softmax(e.add(scores, mask));
    return e.view(e.matmul(weights, flat(v)), q.shape);
  }

  Tensor feed(const Tensor& x, const std::string& name) {
    const Tensor h = linear(x, e.parameter(name + ".up", {s.width, 4 * s.width}),
                            e.parameter(name + ".up.bias", {4 * s.width}));
    return linear(gelu(h), e.parameter(name + ".down", {4 * s.width, s.width}),
                  e.parameter(name + ".down.bias", {s.width}));
  }

  Tensor norm_weight(const std::string& name) { return e.parameter(name + ".w", {s.width}, 1); }
  Tensor norm_bias(const std::string& name) { return e.parameter(name + ".b", {s.width}); }

  run::Run forward() {
    e.module = "embed";
    const Tensor index = e.tokens("tokens", {s.batch, s.tokens}, 50);
    const Tensor place =
        e.constant({s.tokens}, [](std::size_t i) { return static_cast<float>(i); }, DType::int64);
    Tensor h = e.add(e.embedding(e.parameter("wte", {50, s.width}), index),
                     e.embedding(e.parameter("wpe", {64, s.width}), place));
    Tensor waiting;  // the branch that the fused style adds together with the next norm
    const auto norm = [&](const std::string& name) {
      e.module = name;
      if (waiting.memory == nullptr) {
        return e.layer_norm(h, norm_weight(name), norm_bias(name))[0];
      }
      const std::vector<Tensor> out = e.add_norm(h, waiting, norm_weight(name), norm_bias(name));
      h = out[0];
      waiting = {};
      return out[1];
    };
    const auto join = [&](const Tensor& branch, const std::string& name) {
      e.module = name + ".residual";
      if (style == Style::fused) {
        waiting = branch;
      } else {
        h = e.add(h, branch);
      }
    };
    for (std::int64_t layer = 0; layer < s.layers; ++layer) {
      const std::string name = "h." + std::to_string(layer);
      Tensor x = norm(name + ".norm1");
      e.module = name + ".attention";
      join(attend(x, name), name);
      x = norm(name + ".norm2");
      e.module = name + ".mlp";
      join(feed(x, name), name);
    }
    const Tensor last = norm("norm");
    e.module = "head";
    linear(last, e.parameter("head", {s.width, 50}), e.parameter("head.bias", {50}));
    return e.take();
  }
};

inline run::Run gpt(Style style, Options options = {}, GptSize size = {}) {
  return Gpt{Eager(options), style, size}.forward();
}

// One block of attention that decodes `steps` tokens: its cache is concatenated, or written in
// place into a buffer for all tokens.
inline run::Run decode(bool in_place, Options options = {}, int steps = 3) {
  Eager e(options);
  const std::int64_t width = 16, past = 4, longest = past + steps;
  const Tensor wq = e.parameter("q", {width, width}), wk = e.parameter("k", {width, width}),
               wv = e.parameter("v", {width, width}), wo = e.parameter("o", {width, width});
  const Tensor old_k = e.input("old k", {past, width}), old_v = e.input("old v", {past, width});
  Tensor k = old_k, v = old_v;
  if (in_place) {
    k = e.constant({longest, width}, [](std::size_t) { return 0.0F; });
    v = e.constant({longest, width}, [](std::size_t) { return 0.0F; });
    e.copy_(e.slice(k, 0, 0, past), old_k);
    e.copy_(e.slice(v, 0, 0, past), old_v);
  }
  Tensor x = e.input("x", {1, width});
  for (std::int64_t at = past; at < longest; ++at) {
    e.module = "step." + std::to_string(at);
    const Tensor q = e.matmul(x, wq, "mm"), nk = e.matmul(x, wk, "mm"), nv = e.matmul(x, wv, "mm");
    Tensor keys, values;
    if (in_place) {
      e.copy_(e.slice(k, 0, at, at + 1), nk);
      e.copy_(e.slice(v, 0, at, at + 1), nv);
      keys = e.slice(k, 0, 0, at + 1);
      values = e.slice(v, 0, 0, at + 1);
    } else {
      keys = k = e.cat({k, nk}, 0);
      values = v = e.cat({v, nv}, 0);
    }
    const Tensor weights = e.softmax(e.matmul(q, e.transpose(keys, 0, 1), "mm"));
    x = e.add(x, e.matmul(e.matmul(weights, values, "mm"), wo, "mm"));
  }
  return e.take();
}

// Two steps of SGD with momentum on an MLP of two layers: a loop over the weights or one operator
// for all of them.
inline run::Run train(bool foreach, float rate, Options options = {}) {
  Eager e(options);
  const std::vector<Tensor> w{e.parameter("w1", {8, 12}), e.parameter("w2", {12, 6})};
  const std::vector<Tensor> momentum{e.parameter("m1", {8, 12}), e.parameter("m2", {12, 6})};
  for (int step = 0; step < 2; ++step) {
    const std::string at = std::to_string(step);
    e.module = "forward." + at;
    const Tensor x = e.input("x" + at, {10, 8}), target = e.input("y" + at, {10, 6});
    const Tensor h = e.matmul(x, w[0], "mm");
    const Tensor r = e.unary("relu", h, [](float v) { return std::max(v, 0.0F); });
    const Tensor error = e.sub(e.matmul(r, w[1], "mm"), target);
    e.sum(e.mul(error, error));
    e.module = "backward." + at;
    const Tensor g2 = e.matmul(e.transpose(r, 0, 1), error, "mm");
    const Tensor gr = e.matmul(error, e.transpose(w[1], 0, 1), "mm");
    const Tensor gh =
        e.binary("threshold_backward", gr, r, [](float g, float v) { return v > 0 ? g : 0.0F; });
    const Tensor g1 = e.matmul(e.transpose(x, 0, 1), gh, "mm");
    e.module = "optimizer." + at;
    const std::vector<Tensor> g{g1, g2};
    if (foreach) {
      e.foreach_mul_(momentum, 0.9F);
      e.foreach_add_(momentum, g, 1);
      e.foreach_add_(w, momentum, -rate);
    } else {
      for (std::size_t i = 0; i < w.size(); ++i) {
        e.mul_(momentum[i], 0.9F);
        e.add_(momentum[i], g[i]);
        e.add_(w[i], momentum[i], -rate);
      }
    }
  }
  return e.take();
}

}  // namespace joulediff::match::testing
