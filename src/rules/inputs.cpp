#include "rules/inputs.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace joulediff::rules {
namespace {

struct Input {
  const run::Tensor* tensor;
  const run::Operator* reader;  // the first
};

// In the order in which the step first reads them; constants say nothing.
std::vector<Input> inputs_of(const run::Run& run) {
  std::vector<Input> result;
  std::vector<bool> seen(run.tensors.size());
  for (const run::Operator& op : run.operators)
    for (const run::TensorId id : op.inputs) {
      const run::Tensor& tensor = run.tensors[id.index()];
      if (seen[id.index()] || tensor.role != run::Role::input) continue;
      seen[id.index()] = true;
      if (tensor.fingerprint.count > 0) result.push_back({&tensor, &op});
    }
  return result;
}

bool same(const Input& a, const Input& b) {
  const value::Fingerprint &x = a.tensor->fingerprint, &y = b.tensor->fingerprint;
  return x.count == y.count && value::class_of(x.dtype) == value::class_of(y.dtype) &&
         x.own == y.own;
}

bool same_when_rounded(const Input& a, const Input& b) {
  const value::Fingerprint &x = a.tensor->fingerprint, &y = b.tensor->fingerprint;
  return x.count == y.count && value::class_of(x.dtype) == value::DTypeClass::real &&
         value::class_of(y.dtype) == value::DTypeClass::real &&
         (x.bf16 == y.bf16 || x.fp16 == y.fp16);
}

// Takes out of both lists what is equal; returns how many pairs.
template <class Equal>
std::size_t take_equal(std::vector<Input>& a, std::vector<Input>& b, Equal equal) {
  const std::size_t before = a.size();
  std::erase_if(a, [&](const Input& input) {
    const auto found =
        std::ranges::find_if(b, [&](const Input& other) { return equal(input, other); });
    if (found == b.end()) return false;
    b.erase(found);
    return true;
  });
  return before - a.size();
}

std::string describe(const std::vector<Input>& inputs) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, inputs.size()); ++i)
    text += fmt::format("{}[{}] read by {}{}", i > 0 ? ", " : "",
                        fmt::join(inputs[i].tensor->shape, " x "), inputs[i].reader->name,
                        inputs[i].reader->module.empty() ? "" : " in " + inputs[i].reader->module);
  if (inputs.size() > kNamed) text += fmt::format(" and {} more", inputs.size() - kNamed);
  return text;
}

constexpr const char* kSeed =
    "seed what makes them (torch.manual_seed(0), jax.random.key(0), numpy.random.seed(0)) or load "
    "them from one file";

}  // namespace

std::optional<Diagnostic> inputs(const run::Run& a, const run::Run& b) {
  std::vector<Input> only_a = inputs_of(a), only_b = inputs_of(b);
  if (only_a.empty() != only_b.empty() || (a.tensors.empty() && b.tensors.empty()))
    return Diagnostic{Severity::warning, "rules.inputs_unknown",
                      fmt::format("the inputs were not compared: {} recorded none; record with a "
                                  "values pass to know that both did the same work",
                                  only_a.empty() && only_b.empty() ? "the runs"
                                  : only_a.empty()                 ? "a"
                                                                   : "b")};
  take_equal(only_a, only_b, same);
  const std::size_t rounded = take_equal(only_a, only_b, same_when_rounded);
  if (!only_a.empty() && !only_b.empty())
    return Diagnostic{Severity::error, "rules.inputs",
                      fmt::format("the inputs differ: {} in a, {} in b; {}", describe(only_a),
                                  describe(only_b), kSeed)};
  if (!only_a.empty() || !only_b.empty())
    return Diagnostic{
        Severity::warning, "rules.extra_inputs",
        fmt::format("{} reads inputs that the other does not: {}", only_b.empty() ? "a" : "b",
                    describe(only_b.empty() ? only_a : only_b))};
  if (rounded > 0)
    return Diagnostic{Severity::warning, "rules.inputs_rounded",
                      fmt::format("{} input(s) are equal only after rounding: the runs differ in "
                                  "the dtype of what they read; {}",
                                  rounded, "convert them in the program, not before it")};
  return {};
}

}  // namespace joulediff::rules
