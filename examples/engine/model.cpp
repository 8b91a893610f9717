#include "model.h"

#include <algorithm>
#include <charconv>

#include <climits>

#include "kernels.h"

namespace engine {

using kernels::Pointwise;

Model::Model(const Safetensors& file, int heads, Wasteful wasteful, const Recorder& recorder)
    : file_(file), ops_(recorder), wasteful_(wasteful) {
  const std::string prefix = file.has("wte.weight") ? "" : "transformer.";
  const auto& embedding = file.shape(prefix + "wte.weight");
  const auto& places = file.shape(prefix + "wpe.weight");
  if (embedding.size() != 2 || places.size() != 2 || std::max(embedding[0], places[0]) > INT_MAX ||
      std::min(embedding[0], places[0]) < 1 || embedding[1] < 1 || embedding[1] > 1 << 16)
    file.fail("the embeddings are no matrices, or empty: it holds no GPT-2");
  width_ = static_cast<int>(embedding[1]);
  heads_ = heads > 0 ? heads : heads_of(file);
  if (width_ % heads_ != 0)
    file.fail(std::to_string(heads_) + " heads do not divide a width of " + std::to_string(width_) +
              ": give --heads");

  wte_ = weight(prefix + "wte.weight", static_cast<int>(embedding[0]), width_);
  wpe_ = weight(prefix + "wpe.weight", static_cast<int>(places[0]), width_);
  const int layers = file.count_of(prefix + "h.");
  if (layers == 0) file.fail("it has no layer " + prefix + "h.0: it holds no GPT-2");
  for (int i = 0; i < layers; ++i) {
    const std::string name = prefix + "h." + std::to_string(i) + ".";
    layers_.push_back({norm_weights(name + "ln_1"), norm_weights(name + "ln_2"),
                       linear_weights(name + "attn.c_attn", width_, 3 * width_),
                       linear_weights(name + "attn.c_proj", width_, width_),
                       linear_weights(name + "mlp.c_fc", width_, 4 * width_),
                       linear_weights(name + "mlp.c_proj", 4 * width_, width_),
                       matrix(longest(), width_), matrix(longest(), width_)});
  }
  last_norm_ = norm_weights(prefix + "ln_f");

  tokens_ = {static_cast<std::int32_t*>(kernels::allocate(longest() * sizeof(std::int32_t))),
             longest()};
  memory_.push_back(tokens_.data);
  hidden_ = matrix(longest(), width_);
  normed_ = matrix(longest(), width_);
  qkv_ = matrix(longest(), 3 * width_);
  mixed_ = matrix(longest(), width_);
  inner_ = matrix(longest(), 4 * width_);
  projected_ = matrix(longest(), width_);
  logits_ = matrix(1, vocabulary());
  if (wasteful_ == Wasteful::transpose) turned_ = matrix(4 * width_, width_);
  if (wasteful_ == Wasteful::gelu) {
    piece_ = matrix(longest(), 4 * width_);
    other_piece_ = matrix(longest(), 4 * width_);
  }
}

int Model::heads_of(const Safetensors& file) const {
  constexpr int kSize = 64;  // of a head, as all GPT-2 have it
  const std::string said = file.metadata("n_head");
  if (said.empty()) return std::max(1, width_ / kSize);
  int heads = 0;
  const auto [rest, error] = std::from_chars(said.data(), said.data() + said.size(), heads);
  if (error != std::errc() || rest != said.data() + said.size() || heads < 1)
    file.fail("its n_head \"" + said + "\" is no number of heads: give --heads");
  return heads;
}

Model::~Model() {
  for (void* const memory : memory_) kernels::release(memory);
}

Matrix Model::matrix(int rows, int columns) {
  const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  memory_.push_back(kernels::allocate(count * sizeof(float)));
  return {static_cast<float*>(memory_.back()), rows, columns, columns, false};
}

Matrix Model::weight(const std::string& name, int rows, int columns) {
  const std::vector<float> values =
      rows == 1 ? file_.read(name, {columns}) : file_.read(name, {rows, columns});
  Matrix m = matrix(rows, columns);
  kernels::copy(m.data, values.data(), values.size() * sizeof(float));
  m.weight = true;
  return m;
}

Model::Linear Model::linear_weights(const std::string& name, int in, int out) {
  return {weight(name + ".weight", in, out), weight(name + ".bias", 1, out)};
}

Model::Norm Model::norm_weights(const std::string& name) {
  return {weight(name + ".weight", 1, width_), weight(name + ".bias", 1, width_)};
}

std::vector<std::int32_t> Model::generate(const std::vector<std::int32_t>& prompt, int count) {
  const Scope scope;
  const int length = static_cast<int>(prompt.size());
  kernels::copy(tokens_.data, prompt.data(), prompt.size() * sizeof(std::int32_t));
  for (int done = 0; done < count; ++done) {
    const bool whole = done == 0 || wasteful_ == Wasteful::no_cache;
    const int first = whole ? 0 : length + done - 1;
    forward(scope, {tokens_.data + length + done, 1}, {tokens_.data + first, length + done - first},
            first);
  }
  std::vector<std::int32_t> generated(static_cast<std::size_t>(count));
  kernels::copy(generated.data(), tokens_.data + length, generated.size() * sizeof(std::int32_t));
  return generated;
}

void Model::forward(const Scope& scope, Tokens next, Tokens tokens, int position) {
  const Matrix x = hidden_.part(0, tokens.count);
  ops_.embed(scope, x, tokens, wte_, wpe_, position);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const Scope here = scope.in("h." + std::to_string(i));
    const Matrix normed = normed_.part(0, x.rows), projected = projected_.part(0, x.rows);
    ops_.layer_norm(here.in("ln_1"), normed, x, layer.before_attention.weight,
                    layer.before_attention.bias);
    attention(here.in("attn"), layer, normed, position);
    ops_.add(here, x, projected);
    ops_.layer_norm(here.in("ln_2"), normed, x, layer.before_mlp.weight, layer.before_mlp.bias);
    mlp(here.in("mlp"), layer, normed);
    ops_.add(here, x, projected);
  }
  const Matrix last = normed_.part(0, 1);
  ops_.layer_norm(scope.in("ln_f"), last, x.part(x.rows - 1, 1), last_norm_.weight,
                  last_norm_.bias);
  ops_.linear_transposed(scope.in("lm_head"), logits_, last, wte_, nullptr);
  ops_.argmax(scope, next, logits_);
}

void Model::attention(const Scope& scope, Layer& layer, Matrix x, int position) {
  const Matrix qkv = qkv_.part(0, x.rows), mixed = mixed_.part(0, x.rows);
  linear(scope.in("c_attn"), qkv, x, layer.qkv);
  ops_.copy(scope, layer.keys.part(position, x.rows), qkv.slice(width_, width_));
  ops_.copy(scope, layer.values.part(position, x.rows), qkv.slice(2 * width_, width_));
  ops_.attention(scope, mixed, qkv.slice(0, width_), layer.keys.part(0, position + x.rows),
                 layer.values.part(0, position + x.rows), heads_, position);
  linear(scope.in("c_proj"), projected_.part(0, x.rows), mixed, layer.attention_out);
}

void Model::mlp(const Scope& scope, const Layer& layer, Matrix x) {
  const Matrix inner = inner_.part(0, x.rows);
  linear(scope.in("c_fc"), inner, x, layer.up);
  gelu(scope.in("act"), inner);
  linear(scope.in("c_proj"), projected_.part(0, x.rows), inner, layer.down);
}

void Model::linear(const Scope& scope, Matrix out, Matrix x, const Linear& linear,
                   std::source_location at) {
  if (wasteful_ != Wasteful::transpose)
    return ops_.linear(scope, out, x, linear.weight, linear.bias, at);
  const Matrix turned{turned_.data, linear.weight.columns, linear.weight.rows, linear.weight.rows,
                      false};
  ops_.transpose(scope, turned, linear.weight);
  ops_.linear_transposed(scope, out, x, turned, &linear.bias, at);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
void Model::gelu(const Scope& scope, Matrix x) {
  if (wasteful_ != Wasteful::gelu) return ops_.gelu(scope, x, x);
  const Matrix t = piece_.part(0, x.rows), half = other_piece_.part(0, x.rows);
  ops_.pointwise(scope, Pointwise::cube, t, x);
  ops_.pointwise(scope, Pointwise::scale, t, t, {}, 0.044715F);
  ops_.pointwise(scope, Pointwise::add, t, x, t);
  ops_.pointwise(scope, Pointwise::scale, t, t, {}, 0.7978845608F);
  ops_.pointwise(scope, Pointwise::tanh, t, t);
  ops_.pointwise(scope, Pointwise::one_plus, t, t);
  ops_.pointwise(scope, Pointwise::scale, half, x, {}, 0.5F);
  ops_.pointwise(scope, Pointwise::multiply, x, half, t);
}

}  // namespace engine
