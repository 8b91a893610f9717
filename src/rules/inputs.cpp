#include "rules/inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace joulediff::rules {
namespace {

// What a step reads from outside, as a value: its elements, whatever the geometry and however
// often.
struct Input {
  const run::Tensor* tensor;
  const run::Operator* reader;  // the first
  run::TensorId root;           // itself; of a view made within the step, what it is a view of
  bool view;
};

bool same(const Input& a, const Input& b);

// For each tensor the input of the step that it views, or itself.
std::vector<run::TensorId> roots(const run::Run& run) {
  std::vector<run::TensorId> root;
  for (std::size_t i = 0; i < run.tensors.size(); ++i) root.emplace_back(i);
  for (const run::Operator& op : run.operators)
    for (const run::TensorId out : op.outputs)
      for (const run::TensorId in : op.inputs) {
        const run::Tensor &made = run.tensors[out.index()], &read = run.tensors[in.index()];
        if (made.role != run::Role::input || read.role != run::Role::input) continue;
        if (made.storage == read.storage) root[out.index()] = root[in.index()];
      }
  return root;
}

// In the order in which the step first reads them; constants say nothing.
std::vector<Input> inputs_of(const run::Run& run) {
  const std::vector<run::TensorId> root = roots(run);
  std::vector<Input> result;
  std::vector<bool> seen(run.tensors.size());
  for (const run::Operator& op : run.operators)
    for (const run::TensorId id : op.inputs) {
      const run::Tensor& tensor = run.tensors[id.index()];
      if (seen[id.index()] || tensor.role != run::Role::input) continue;
      seen[id.index()] = true;
      const Input input{&tensor, &op, root[id.index()], root[id.index()] != id};
      const bool known =
          std::ranges::any_of(result, [&](const Input& other) { return same(input, other); });
      if (tensor.fingerprint.count > 0 && !known) result.push_back(input);
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

struct Side {
  std::vector<Input> inputs;
  std::set<std::size_t> equal = {};  // roots of what the other side has too
};

// Takes out of both sides what is equal; returns how many pairs.
template <class Equal>
std::size_t take_equal(Side& a, Side& b, Equal equal) {
  return std::erase_if(a.inputs, [&](const Input& input) {
    const auto found =
        std::ranges::find_if(b.inputs, [&](const Input& other) { return equal(input, other); });
    if (found == b.inputs.end()) return false;
    a.equal.insert(input.root.index());
    b.equal.insert(found->root.index());
    b.inputs.erase(found);
    return true;
  });
}

// What a step cuts out of an input is its own work: an input is known to the other side by the
// whole or by a part.
void drop_known(Side& side) {
  std::erase_if(side.inputs, [&](const Input& input) {
    return input.view || side.equal.contains(input.root.index());
  });
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

// The weights of a run, to be asked for one of another.
class Weights {
 public:
  explicit Weights(const run::Run& run) {
    for (const run::Tensor& tensor : run.tensors) {
      if (tensor.role != run::Role::parameter) continue;
      exact_.emplace(tensor.fingerprint.count, tensor.fingerprint.own);
      exact_.emplace(tensor.fingerprint.count, tensor.fingerprint.bf16);
      by_count_.emplace(tensor.fingerprint.count, &tensor.fingerprint);
    }
  }

  bool has(const value::Fingerprint& print) const {
    if (exact_.contains({print.count, print.own}) || exact_.contains({print.count, print.bf16}))
      return true;
    const auto [first, last] = by_count_.equal_range(print.count);
    return std::any_of(first, last, [&](const auto& known) { return near(print, *known.second); });
  }

 private:
  // Weights that some steps of training have moved apart by rounding. Those of another seed have
  // other extremes.
  static bool near(const value::Fingerprint& x, const value::Fingerprint& y) {
    const double scale = 1e-3 * std::max(x.rms, y.rms);
    const double reach = 10 * scale;
    return std::abs(x.mean - y.mean) <= scale && std::abs(x.rms - y.rms) <= scale &&
           std::abs(x.l4 - y.l4) <= scale && std::abs(x.min - y.min) <= reach &&
           std::abs(x.max - y.max) <= reach;
  }

  std::set<std::pair<std::uint64_t, value::Lanes>> exact_;  // elements and their multiset
  std::multimap<std::uint64_t, const value::Fingerprint*> by_count_;
};

Shared shared_weights(const run::Run& run, const run::Run& other) {
  const Weights known(other);
  std::set<std::pair<std::uint64_t, value::Lanes>> counted;  // views of one weight count once
  Shared shared;
  for (const run::Tensor& tensor : run.tensors) {
    const value::Fingerprint& print = tensor.fingerprint;
    // Biases of zeros and scales of ones are equal whatever the seed.
    if (tensor.role != run::Role::parameter || print.distinct < 3) continue;
    if (!counted.emplace(print.count, print.own).second) continue;
    shared.all += print.count;
    if (known.has(print)) shared.equal += print.count;
  }
  return shared;
}

// Of several processes one gives the values: that of another rank has other inputs, however well
// they are seeded.
std::string remedy(const run::Run& a, const run::Run& b) {
  const auto rank = [](const run::Run& run) {
    const auto found = run.manifest.facts.find("values_of_rank");
    return found != run.manifest.facts.end() ? found->second : "0";
  };
  if (rank(a) == rank(b)) return kSeed;
  return fmt::format(
      "the values of a are those of its rank {}, of b those of rank {}: record both "
      "again, so that the same worker is compared",
      rank(a), rank(b));
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
  Side side_a{inputs_of(a)}, side_b{inputs_of(b)};
  std::vector<Input>&only_a = side_a.inputs, &only_b = side_b.inputs;
  if (only_a.empty() != only_b.empty() || (a.tensors.empty() && b.tensors.empty()))
    return Diagnostic{Severity::warning, "rules.inputs_unknown",
                      fmt::format("the inputs were not compared: {} recorded none; record with a "
                                  "values pass to know that both did the same work",
                                  only_a.empty() && only_b.empty() ? "the runs"
                                  : only_a.empty()                 ? "a"
                                                                   : "b")};
  take_equal(side_a, side_b, same);
  const std::size_t rounded = take_equal(side_a, side_b, same_when_rounded);
  drop_known(side_a);
  drop_known(side_b);
  if (!only_a.empty() && !only_b.empty())
    return Diagnostic{Severity::error, "rules.inputs",
                      fmt::format("the inputs differ: {} in a, {} in b; {}", describe(only_a),
                                  describe(only_b), remedy(a, b))};
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
