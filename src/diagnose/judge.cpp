// The layers of a model repeat one region: their operators have the same signatures, each signature
// is replayed once in a block, so their joules are one measurement and deserve one test, not
// twelve. Such regions form a group. The groups that are large enough to hold a finding are the
// family over which Holm's correction is taken. Only what the interval carries is said: wholly
// above the threshold, wholly inside it, or undecided.
#include "diagnose/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "diagnose/ratio.h"
#include "diagnose/statistics.h"

namespace joulediff::diagnose {
namespace {

// Signatures in any order; an operator without one stands for itself.
std::vector<std::pair<bool, std::uint32_t>> signatures(const run::Run& run,
                                                       const RegionSide& side) {
  std::vector<std::pair<bool, std::uint32_t>> key;
  for (const run::OperatorId id : side.operators) {
    const run::Operator& op = run.operators[id.index()];
    if (op.view) continue;
    key.emplace_back(op.signature.valid(), op.signature.valid() ? op.signature.value : id.value);
  }
  std::sort(key.begin(), key.end());
  return key;
}

std::vector<Group> group(const Inputs& inputs, const std::vector<RegionResult>& regions) {
  using Key = std::vector<std::pair<bool, std::uint32_t>>;
  std::map<std::tuple<Key, Key, bool, bool>, std::size_t> places;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const RegionResult& region = regions[i];
    const auto [found, is_new] =
        places.try_emplace({signatures(inputs.a, region.a), signatures(inputs.b, region.b),
                            region.outputs_agree, region.inputs_differ},
                           groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].regions.push_back(i);
  }
  for (Group& one : groups) {
    one.a = cost(inputs.a, inputs.cost_a, operators_of(regions, one.regions, Side::a));
    one.b = cost(inputs.b, inputs.cost_b, operators_of(regions, one.regions, Side::b));
  }
  return groups;
}

bool worth_a_test(const Inputs& inputs, const Group& group) {
  const double share_a = group.a.mean / inputs.cost_a.ledger.total.joules.value;
  const double share_b = group.b.mean / inputs.cost_b.ledger.total.joules.value;
  return group.a.known && group.b.known && std::max(share_a, share_b) >= kLeastShare;
}

Outcome decide(const Group& group, const RegionResult& example, double seconds_a,
               double seconds_b) {
  const Difference& d = group.difference;
  if (!group.noise_floor || example.inputs_differ) return Outcome::undecided;
  if (d.low > -kThreshold && d.high < kThreshold) return Outcome::equal;
  if (d.low <= kThreshold && d.high >= -kThreshold) return Outcome::undecided;
  if (std::abs(d.value) <= *group.noise_floor) return Outcome::undecided;
  const double dear = d.value > 0 ? seconds_b : seconds_a;
  const double cheap = d.value > 0 ? seconds_a : seconds_b;
  return example.outputs_agree && cheap <= kSlower * dear ? Outcome::waste : Outcome::trade_off;
}

}  // namespace

std::vector<run::OperatorId> operators_of(const std::vector<RegionResult>& regions,
                                          const std::vector<std::size_t>& which, Side side) {
  std::vector<run::OperatorId> all;
  for (const std::size_t i : which) {
    const RegionSide& of = side == Side::a ? regions[i].a : regions[i].b;
    all.insert(all.end(), of.operators.begin(), of.operators.end());
  }
  return all;
}

std::vector<Group> judge(const Inputs& inputs, std::vector<RegionResult>& regions) {
  std::vector<Group> groups = group(inputs, regions);
  const auto machine = noise_of(inputs.a, inputs.b);
  const auto of_machine =
      machine ? machine->operator_floor(inputs.cost_a.blocks.size(), inputs.cost_b.blocks.size())
              : std::nullopt;
  std::vector<Ratio> ratios;
  std::vector<std::size_t> tested;
  std::vector<double> p;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    ratios.emplace_back(groups[i].a, groups[i].b);
    if (!worth_a_test(inputs, groups[i])) continue;
    tested.push_back(i);
    p.push_back(ratios.back().p_value());
  }
  const std::vector<double> levels = holm_levels(p, kAlpha);
  // What is too small for a test of its own is shown with the strictest interval and not judged.
  const double strictest = kAlpha / static_cast<double>(std::max<std::size_t>(tested.size(), 1));
  for (Group& one : groups) one.level = strictest;
  for (std::size_t k = 0; k < tested.size(); ++k) groups[tested[k]].level = levels[k];

  for (std::size_t i = 0; i < groups.size(); ++i) {
    Group& one = groups[i];
    one.difference = ratios[i].difference(one.level);
    one.noise_floor = ratios[i].noise_floor();
    if (one.noise_floor && of_machine) one.noise_floor = std::max(*one.noise_floor, *of_machine);
    if (!one.a.known || !one.b.known) one.difference = {one.difference.value, -1, 1};
    const auto seconds = [&](Side side) {
      return time(side == Side::a ? inputs.cost_a : inputs.cost_b,
                  operators_of(regions, one.regions, side))
          .value;
    };
    if (worth_a_test(inputs, one)) {
      const Difference& d = one.difference;
      one.outcome = decide(one, regions[one.regions.front()], seconds(Side::a), seconds(Side::b));
      one.suspicious = one.outcome == Outcome::undecided && (d.low > 0 || d.high < 0) &&
                       std::abs(d.value) > std::max(kThreshold, one.noise_floor.value_or(0));
    }
    for (const std::size_t region : one.regions) {
      regions[region].difference = one.difference;
      regions[region].noise_floor = one.noise_floor;
      regions[region].outcome = one.outcome;
    }
  }
  return groups;
}

}  // namespace joulediff::diagnose
