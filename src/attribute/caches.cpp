#include "attribute/caches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace joulediff::attribute {
namespace {

// Bytes of L2 of boards on which models run are 40 to 126 million.
constexpr double kCache = 50e6;
// A byte from HBM instead of L2, somewhere between nothing and twice this: a copy on an H200 costs
// 118 pJ for each byte that it reads or writes, all levels together.
constexpr double kJoulesPerByte = 60e-12;
// Where no tensors are known: on an H200 programs cost up to 3 % more than their replays said
// (a GPT-2 in three settings: 1.2, 1.7 and 2.8 %, of which a fifth is static).
constexpr double kUnknown = 0.015, kUnknownHalfWidth = 0.03;
// And where the time tells: joules grow by as much as time does, up to twice as much. A byte that
// is waited for costs 60 pJ x 4.8 TB/s = 290 W of an H200's HBM while it is, about what operators
// draw; what is waited for only in part costs the same joules in less time. 95 %: 0.5 to 2.5 times.
constexpr double kWithTime = 1.5, kWithTimeHalfWidth = 1;

using Storage = std::uint64_t;

double bytes(const run::Run& run, const std::vector<run::TensorId>& ids) {
  double sum = 0;
  for (const run::TensorId id : ids) sum += run::bytes(run.tensors[id.index()]);
  return sum;
}

// Bytes that each operator of the step finds in no cache of this size; negative: no tensors known.
struct Cold {
  double bytes = -1;
  bool fits = true;  // its own bytes do: else its replay was cold, too
};
std::vector<Cold> cold_bytes(const run::Run& run, double cache) {
  std::vector<Cold> result(run.operators.size());
  // Bytes that the step has moved before each operator, and, by storage, when it was last touched.
  std::vector<double> before(run.operators.size() + 1);
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    const run::Operator& op = run.operators[i];
    before[i + 1] = before[i] + (op.view ? 0 : bytes(run, op.inputs) + bytes(run, op.outputs));
  }
  const double step = before.back();
  std::map<Storage, double> last;
  // Twice: what a step touches first it last touched in the step before.
  for (const double round : {0.0, step})
    for (std::size_t i = 0; i < run.operators.size(); ++i) {
      const run::Operator& op = run.operators[i];
      if (op.view || (op.inputs.empty() && op.outputs.empty())) continue;
      const double now = round + before[i], own = before[i + 1] - before[i];
      double cold = 0;
      for (const run::TensorId id : op.inputs) {
        const run::Tensor& tensor = run.tensors[id.index()];
        const auto touched = last.find(tensor.storage);
        if (touched == last.end() || now - touched->second > cache) cold += run::bytes(tensor);
      }
      result[i] = {cold, own <= cache};
      for (const auto* ids : {&op.inputs, &op.outputs})
        for (const run::TensorId id : *ids) last[run.tensors[id.index()].storage] = now + own;
    }
  return result;
}

}  // namespace

Caches::Caches(const run::Run& run)
    : cold_bytes_(run.operators.size(), -1),
      least_(run.operators.size(), 0),
      most_(run.operators.size(), 1) {
  const auto in_one = cold_bytes(run, kCache), in_larger = cold_bytes(run, 2 * kCache),
             in_smaller = cold_bytes(run, kCache / 2);
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    cold_bytes_[i] = in_one[i].fits ? in_one[i].bytes : 0;
    const double all = bytes(run, run.operators[i].inputs);
    if (in_one[i].bytes < 0 || all <= 0) continue;
    least_[i] = in_larger[i].bytes / all;
    most_[i] = in_smaller[i].bytes / all;
  }
}

Caches::Extra Caches::between(run::OperatorId op, const Extra& all_cold) const {
  const double least = least_[op.index()], most = most_[op.index()];
  return {(least + most) / 2 * all_cold.joules,
          std::hypot(most * all_cold.half_width, (most - least) / 2 * all_cold.joules)};
}

Caches::Extra Caches::extra(run::OperatorId op, double warm_joules,
                            const std::optional<Slowdown>& slower) const {
  const double cold = cold_bytes_[op.index()];
  if (cold >= 0) return {kJoulesPerByte * cold, kJoulesPerByte * cold};
  const double joules = std::max(0.0, warm_joules);
  if (!slower) return {kUnknown * joules, kUnknownHalfWidth * joules};
  return {
      kWithTime * slower->relative * joules,
      std::hypot(kWithTimeHalfWidth * slower->relative, kWithTime * slower->half_width) * joules};
}

}  // namespace joulediff::attribute
