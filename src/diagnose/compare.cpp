#include "diagnose/compare.h"

#include <algorithm>
#include <cmath>

#include "diagnose/costs.h"
#include "diagnose/findings.h"
#include "diagnose/judge.h"
#include "diagnose/place.h"
#include "diagnose/ratio.h"

namespace joulediff::diagnose {
namespace {

// A region is where the operator that costs most of it was called.
Places dearest_place(const run::Run& run, const attribute::Attribution& costs,
                     const std::vector<run::OperatorId>& operators) {
  Places at;
  double most = -1;
  for (const run::OperatorId id : operators) {
    if (run.operators[id.index()].view || id.index() >= costs.operators.size()) continue;
    const double joules = costs.operators[id.index()].total.joules.value;
    if (joules <= most) continue;
    Places found = places(run, id);
    if (!found.where) continue;
    most = joules;
    at = std::move(found);
  }
  return at;
}

RegionSide side(const run::Run& run, const attribute::Attribution& costs,
                const std::vector<run::OperatorId>& operators) {
  const Measured measured = cost(run, costs, operators);
  Places at = dearest_place(run, costs, operators);
  return {
      operators,           non_negative(measured.energy()), time(costs, operators), measured.known,
      std::move(at.where), std::move(at.called_from)};
}

Unmatched unmatched(const run::Run& run, const attribute::Attribution& costs,
                    const std::vector<run::OperatorId>& operators) {
  const Measured measured = cost(run, costs, operators);
  return {operators, non_negative(measured.energy()), measured.known};
}

}  // namespace

Comparison compare(const Inputs& inputs) {
  Comparison comparison;
  comparison.comparable = inputs.comparable;
  for (std::size_t i = 0; i < inputs.match.regions.size(); ++i) {
    const match::Region& region = inputs.match.regions[i];
    RegionResult result;
    result.region = i;
    result.a = side(inputs.a, inputs.cost_a, region.a);
    result.b = side(inputs.b, inputs.cost_b, region.b);
    result.outputs_agree = region.outputs_agree;
    result.inputs_differ = region.inputs_differ;
    result.matched_by = region.matched_by;
    comparison.regions.push_back(std::move(result));
  }
  const std::vector<Group> groups = judge(inputs, comparison.regions);
  comparison.unmatched_a = unmatched(inputs.a, inputs.cost_a, inputs.match.unmatched_a);
  comparison.unmatched_b = unmatched(inputs.b, inputs.cost_b, inputs.match.unmatched_b);
  comparison.findings = find(inputs, groups, comparison);

  const Ratio whole(per_work_unit(inputs.a, inputs.cost_a), per_work_unit(inputs.b, inputs.cost_b));
  comparison.whole = whole.difference(kAlpha);
  comparison.gate = whole.growth(kAlpha);
  comparison.noise_floor = whole.noise_floor();
  comparison.machine = noise_of(inputs.a, inputs.b);
  if (comparison.noise_floor && comparison.machine)
    comparison.noise_floor = std::max(
        *comparison.noise_floor,
        comparison.machine->whole_floor(inputs.cost_a.blocks.size(), inputs.cost_b.blocks.size()));
  return comparison;
}

Gate gate(const Comparison& comparison, double limit) {
  if (!comparison.noise_floor) return Gate::undecided;
  if (comparison.gate.low > limit)
    return std::abs(comparison.whole.value) > *comparison.noise_floor ? Gate::failed
                                                                      : Gate::undecided;
  return comparison.gate.high <= limit ? Gate::passed : Gate::undecided;
}

}  // namespace joulediff::diagnose
