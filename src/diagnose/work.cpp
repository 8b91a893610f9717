#include "diagnose/work.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "diagnose/evidence.h"

namespace joulediff::diagnose {
namespace {

using Tensors = std::vector<const run::Tensor*>;

double product(const std::vector<std::int64_t>& sizes) {
  double all = 1;
  for (const std::int64_t size : sizes) all *= static_cast<double>(size);
  return all;
}

double elements(const run::Tensor& tensor) {
  return product(tensor.shape);
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

// The left matrix among the inputs of a product; none: it is none.
const run::Tensor* left_matrix(std::string_view name, const Tensors& in) {
  constexpr std::array<std::string_view, 7> kFirst = {"mm",  "bmm",        "matmul", "linear",
                                                      "dot", "_scaled_mm", "mv"};
  constexpr std::array<std::string_view, 4> kSecond = {"addmm", "baddbmm", "addbmm", "addmv"};
  const std::size_t at = is_one_of(name, kFirst) ? 0 : is_one_of(name, kSecond) ? 1 : 2;
  return at < 2 && at < in.size() && !in[at]->shape.empty() ? in[at] : nullptr;
}

// Queries and keys are [..., length, width].
double attention(const Tensors& in, bool backward, bool causal) {
  constexpr double kBackward = 2.5;            // five products for the forward's two
  const std::size_t first = backward ? 1 : 0;  // the gradient comes first
  if (in.size() < first + 3) return 0;
  const auto& q = in[first]->shape;
  const auto& k = in[first + 1]->shape;
  const auto& v = in[first + 2]->shape;
  if (q.size() < 3 || k.size() != q.size() || v.size() != q.size()) return 0;
  const auto length = static_cast<double>(k[k.size() - 2]);
  const auto width = static_cast<double>(q.back() + v.back());
  const double rows = product(q) / static_cast<double>(q.back());
  return 2 * rows * length * width * (causal ? 0.5 : 1) * (backward ? kBackward : 1);
}

double convolution(const Tensors& in, const Tensors& out, bool backward, bool transposed) {
  if (in.size() < 2 || out.empty()) return 0;
  // Forward: image, weight. Backward: gradient, image, weight.
  const run::Tensor& weight = *in[backward ? 2 : 1];
  const run::Tensor& many = backward ? *in[0] : transposed ? *in[0] : *out[0];
  if (weight.shape.size() < 3 || weight.shape[0] <= 0) return 0;
  const double each = 2 * elements(many) * elements(weight) / static_cast<double>(weight.shape[0]);
  const auto wanted = std::ranges::count_if(
      out, [&](const run::Tensor* made) { return made->shape.size() == weight.shape.size(); });
  return each * (backward ? static_cast<double>(wanted) : 1);
}

double matrix_of(std::string_view name, const run::Operator& op, const Tensors& in,
                 const Tensors& out) {
  const bool backward = has(name, "backward");
  if (has(name, "scaled_dot_product") || has(name, "flash_attention") ||
      has(name, "efficient_attention"))
    return attention(
        in, backward,
        has(op.arguments, R"("is_causal": true)") || has(op.arguments, R"("is_causal":true)"));
  if (has(name, "convolution"))
    return backward && in.size() < 3 ? 0
                                     : convolution(in, out, backward,
                                                   has(op.arguments, R"("transposed": true)") ||
                                                       has(op.arguments, R"("transposed":true)"));
  const run::Tensor* left = left_matrix(name, in);
  if (left == nullptr || out.empty()) return 0;
  return 2 * elements(*out[0]) * static_cast<double>(left->shape.back());
}

// Reads of a table only the rows that are asked for.
bool looks_up(std::string_view name) {
  constexpr std::array<std::string_view, 5> kLookUps = {"embedding", "index_select", "gather",
                                                        "index", "take_along_dim"};
  return is_one_of(name, kLookUps);
}

Tensors tensors(const run::Run& run, const std::vector<run::TensorId>& ids) {
  Tensors all;
  for (const run::TensorId id : ids)
    if (id.valid() && id.index() < run.tensors.size()) all.push_back(&run.tensors[id.index()]);
  return all;
}

}  // namespace

std::optional<WorkOf> work_of(const run::Run& run, const run::Operator& op) {
  const Tensors in = tensors(run, op.inputs), out = tensors(run, op.outputs);
  if (in.empty() && out.empty()) return std::nullopt;
  const std::string base = base_name(op.name);
  const std::string_view name = std::string_view(base).substr(base.find('.') + 1);
  WorkOf work;
  double read = 0, written = 0, most = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (std::find(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(i), in[i]) !=
        in.begin() + static_cast<std::ptrdiff_t>(i))
      continue;  // x * x reads x once
    if (!(looks_up(name) && i == 0)) read += run::bytes(*in[i]);
    most = std::max(most, elements(*in[i]));
  }
  for (const run::Tensor* made : out) {
    written += run::bytes(*made);
    most = std::max(most, elements(*made));
  }
  if (looks_up(name)) read += written, most = out.empty() ? 0 : elements(*out[0]);
  work.bytes = read + written;
  work.matrix = matrix_of(name, op, in, out);
  if (work.matrix > 0) {
    const run::Tensor* left = left_matrix(name, in);
    work.dtype = (left != nullptr ? left : in[0])->fingerprint.dtype;
  } else {
    work.vector = most;
  }
  return work;
}

}  // namespace joulediff::diagnose
