// An operator's joules come from one replay of its signature in each block. Calls of one signature
// therefore share their error, and half widths add up within a signature; signatures are replayed
// apart, and theirs add in quadrature. The error of a mean over blocks is judged by the spread
// between the blocks; what the meter says of a single block is only a lower bound of it.
#include "diagnose/costs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "diagnose/statistics.h"

namespace joulediff::diagnose {
namespace {

constexpr double kSigmasOfInterval = 1.959964;  // of the 95 % intervals that energies carry

struct Sum {
  double joules = 0;
  double error = 0;
  Standing standing = Standing::measured;
  bool known = true;
};

Sum sum(const run::Run& run, const std::vector<attribute::OperatorCost>& costs,
        std::span<const run::OperatorId> operators) {
  Sum total;
  std::map<run::SignatureId, double> half_widths;
  double alone = 0;  // operators without a signature
  for (const run::OperatorId id : operators) {
    if (id.index() >= costs.size() || !costs[id.index()].known) {
      total.known = total.known && run.operators[id.index()].view;
      continue;
    }
    const Energy& energy = costs[id.index()].total;
    const run::SignatureId signature = run.operators[id.index()].signature;
    total.joules += energy.joules.value;
    total.standing = std::max(total.standing, energy.standing);
    const double half = energy.half_width().value;
    if (signature.valid()) {
      half_widths[signature] += half;
    } else {
      alone += half * half;
    }
  }
  double squares = alone;
  for (const auto& [signature, half] : half_widths) squares += half * half;
  total.error = std::sqrt(squares) / kSigmasOfInterval;
  return total;
}

void take_mean(Measured& measured, const std::vector<double>& errors) {
  const auto n = static_cast<double>(measured.blocks.size());
  measured.mean = 0;
  double squares = 0;
  for (const double joules : measured.blocks) measured.mean += joules / n;
  for (const double error : errors) squares += error * error;
  measured.within = std::sqrt(squares) / n;
}

}  // namespace

Energy Measured::energy() const {
  double half = within * kSigmasOfInterval;
  if (blocks.size() > 1) {
    const auto n = static_cast<double>(blocks.size());
    double squares = 0;
    for (const double joules : blocks) squares += (joules - mean) * (joules - mean);
    const double error = std::sqrt(squares / (n - 1) / n);
    half = std::max(half, error * student_quantile(0.05, n - 1));
  }
  return Energy::around(Joules(mean), Joules(half), standing);
}

Measured cost(const run::Run& run, const attribute::Attribution& costs,
              std::span<const run::OperatorId> operators) {
  const Sum mean = sum(run, costs.operators, operators);
  Measured measured{mean.joules, {}, mean.error, mean.standing, mean.known};
  std::vector<double> errors;
  for (const attribute::BlockCosts& block : costs.blocks) {
    const Sum one = sum(run, block.operators, operators);
    if (!one.known) continue;
    measured.blocks.push_back(one.joules);
    errors.push_back(one.error);
  }
  if (!measured.blocks.empty()) take_mean(measured, errors);
  return measured;
}

Seconds time(const attribute::Attribution& costs, std::span<const run::OperatorId> operators) {
  Seconds total;
  for (const run::OperatorId id : operators)
    if (id.index() < costs.operators.size()) total += costs.operators[id.index()].seconds;
  return total;
}

Measured per_work_unit(const run::Run& run, const attribute::Attribution& costs) {
  const double work = attribute::work_of_step(run);
  const Energy& mean = costs.ledger.total;
  Measured measured{mean.joules.value / work, {}, 0, mean.standing, true};
  measured.within = mean.half_width().value / kSigmasOfInterval / work;
  std::vector<double> errors;
  for (const attribute::BlockCosts& block : costs.blocks) {
    if (!block.ledger) continue;
    measured.blocks.push_back(block.ledger->total.joules.value / work);
    errors.push_back(block.ledger->total.half_width().value / kSigmasOfInterval / work);
  }
  if (!measured.blocks.empty()) take_mean(measured, errors);
  return measured;
}

}  // namespace joulediff::diagnose
