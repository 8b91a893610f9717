#include "rules/inputs.h"

#include <algorithm>
#include <set>
#include <utility>
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

// Elements of a run's weights, and how many of them lie in tensors that `other` has too.
struct Shared {
  std::uint64_t all = 0;
  std::uint64_t equal = 0;
};

using Key = std::pair<std::uint64_t, value::Lanes>;  // of elements and their multiset
std::set<Key> keys_of(const run::Run& run) {
  std::set<Key> keys;
  for (const run::Tensor& tensor : run.tensors) {
    if (tensor.role != run::Role::parameter) continue;
    keys.emplace(tensor.fingerprint.count, tensor.fingerprint.own);
    keys.emplace(tensor.fingerprint.count, tensor.fingerprint.bf16);
  }
  return keys;
}

Shared shared_weights(const run::Run& run, const run::Run& other) {
  const std::set<Key> keys = keys_of(other);
  std::set<Key> counted;  // the views of one weight count once
  Shared shared;
  for (const run::Tensor& tensor : run.tensors) {
    const value::Fingerprint& print = tensor.fingerprint;
    // Biases of zeros and scales of ones are equal whatever the seed.
    if (tensor.role != run::Role::parameter || print.distinct < 3) continue;
    if (!counted.emplace(print.count, print.own).second) continue;
    shared.all += print.count;
    if (keys.contains({print.count, print.own}) || keys.contains({print.count, print.bf16}))
      shared.equal += print.count;
  }
  return shared;
}

}  // namespace

std::optional<Diagnostic> weights(const run::Run& a, const run::Run& b) {
  const Shared of_a = shared_weights(a, b), of_b = shared_weights(b, a);
  const auto most_differ = [](const Shared& shared) { return 2 * shared.equal < shared.all; };
  if (!most_differ(of_a) || !most_differ(of_b)) return {};
  return Diagnostic{
      Severity::warning, "rules.weights",
      fmt::format("only {:.0f} % of the weights of a and {:.0f} % of those of b are equal, so few "
                  "values will match; load both from one file, or {}",
                  100.0 * static_cast<double>(of_a.equal) / static_cast<double>(of_a.all),
                  100.0 * static_cast<double>(of_b.equal) / static_cast<double>(of_b.all), kSeed)};
}

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
