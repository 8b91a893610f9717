// The regions of a model's layers differ for one reason at one line: they are one finding, whose
// saving is theirs together. A setting has no line; wherever it acts, it is one finding. Findings
// with a verdict come first, in order of saving; what is only suspected follows.
#include "diagnose/findings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "diagnose/evidence.h"
#include "diagnose/place.h"
#include "diagnose/ratio.h"

namespace joulediff::diagnose {
namespace {

constexpr double kOneSided = 0.1;  // unmatched work of one side against the other's

std::vector<run::OperatorId> working(const run::Run& run,
                                     const std::vector<run::OperatorId>& operators) {
  std::vector<run::OperatorId> rest;
  for (const run::OperatorId id : operators)
    if (!run.operators[id.index()].view) rest.push_back(id);
  return rest;
}

Part part(const Inputs& inputs, Side side, const RegionResult& region) {
  if (side == Side::a)
    return {inputs.a, inputs.cost_a, side, working(inputs.a, region.a.operators)};
  return {inputs.b, inputs.cost_b, side, working(inputs.b, region.b.operators)};
}

struct Fold {
  std::vector<std::size_t> regions;
  double level = kAlpha;
  double largest = 0;  // of the groups folded: its answer is told
  Answer answer;
};

// Saving, share and difference of a finding from the operators of its regions.
void measure(const Inputs& inputs, Finding& finding, const std::vector<run::OperatorId>& of_a,
             const std::vector<run::OperatorId>& of_b, double level) {
  const Measured a = cost(inputs.a, inputs.cost_a, of_a);
  const Measured b = cost(inputs.b, inputs.cost_b, of_b);
  const bool is_a = finding.side == Side::a;
  finding.saving = is_a ? a.energy() - b.energy() : b.energy() - a.energy();
  const Energy& total = is_a ? inputs.cost_a.ledger.total : inputs.cost_b.ledger.total;
  finding.share_of_run = finding.saving.joules / total.joules;
  finding.difference = Ratio(a, b).difference(level);
}

std::vector<Finding> fold(const Inputs& inputs, const std::vector<Group>& groups,
                          Comparison& comparison) {
  using Key = std::tuple<Outcome, Side, CauseKind, std::string, std::string, std::uint32_t>;
  std::map<Key, Fold> folds;
  for (const Group& group : groups) {
    const bool judged = group.outcome == Outcome::waste || group.outcome == Outcome::trade_off;
    if (!judged && !group.suspicious) continue;
    const Side side = group.difference.value > 0 ? Side::b : Side::a;
    const Side other = side == Side::a ? Side::b : Side::a;
    const RegionResult& region = comparison.regions[group.regions.front()];
    Answer answer = find_cause(ask(part(inputs, side, region), part(inputs, other, region)));
    const Cause& cause = answer.cause;
    const bool everywhere = cause.kind == CauseKind::setting || !cause.where;
    Fold& one =
        folds[{group.outcome, side, cause.kind, cause.key,
               everywhere ? std::string() : cause.where->file, everywhere ? 0 : cause.where->line}];
    one.regions.insert(one.regions.end(), group.regions.begin(), group.regions.end());
    one.level = std::min(one.level, group.level);
    const double joules = std::abs(group.a.mean - group.b.mean);
    if (joules <= one.largest) continue;
    one.largest = joules;
    one.answer = std::move(answer);
  }

  std::vector<Finding> findings;
  for (auto& [key, one] : folds) {
    std::sort(one.regions.begin(), one.regions.end());
    Finding finding;
    finding.outcome = std::get<Outcome>(key);
    finding.side = std::get<Side>(key);
    finding.regions = one.regions;
    finding.cause = std::move(one.answer.cause);
    finding.advice = std::move(one.answer.advice);
    measure(inputs, finding, operators_of(comparison.regions, one.regions, Side::a),
            operators_of(comparison.regions, one.regions, Side::b), one.level);
    // A saving that may be none is no waste, whatever its regions' ratio says.
    if (finding.saving.low.value <= 0) {
      finding.outcome = Outcome::undecided;
      for (const std::size_t i : one.regions) comparison.regions[i].outcome = Outcome::undecided;
    }
    if (finding.share_of_run >= kLeastShare) {
      findings.push_back(std::move(finding));
    } else {
      for (const std::size_t i : one.regions) comparison.regions[i].outcome = Outcome::undecided;
    }
  }
  return findings;
}

// Work of one side without a counterpart, where the other side has next to none: the calls of one
// operator at one place are a finding.
void add_unmatched(const Inputs& inputs, const Comparison& comparison, Side side,
                   std::vector<Finding>& findings) {
  const bool is_a = side == Side::a;
  const Unmatched& mine = is_a ? comparison.unmatched_a : comparison.unmatched_b;
  const Unmatched& theirs = is_a ? comparison.unmatched_b : comparison.unmatched_a;
  if (theirs.energy.joules.value > kOneSided * mine.energy.joules.value) return;
  const run::Run& run = is_a ? inputs.a : inputs.b;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::vector<run::OperatorId>> calls;
  for (const run::OperatorId id : working(run, mine.operators)) {
    const Places at = places(run, id);
    calls[{base_name(run.operators[id.index()].name), at.where ? at.where->file : std::string(),
           at.where ? at.where->line : 0}]
        .push_back(id);
  }
  const bool rest_agrees = std::all_of(comparison.regions.begin(), comparison.regions.end(),
                                       [](const RegionResult& r) { return r.outputs_agree; });
  for (const auto& [key, operators] : calls) {
    const Part dear{run, is_a ? inputs.cost_a : inputs.cost_b, side, operators};
    const Part cheap{is_a ? inputs.b : inputs.a,
                     is_a ? inputs.cost_b : inputs.cost_a,
                     is_a ? Side::b : Side::a,
                     {}};
    Answer answer = find_cause(ask(dear, cheap));
    Finding finding;
    finding.side = side;
    finding.cause = std::move(answer.cause);
    finding.advice = std::move(answer.advice);
    measure(inputs, finding, is_a ? operators : std::vector<run::OperatorId>{},
            is_a ? std::vector<run::OperatorId>{} : operators, kAlpha);
    const bool controlled = inputs.cost_a.blocks.size() > 1 && inputs.cost_b.blocks.size() > 1;
    const bool certain = controlled && rest_agrees && finding.saving.low.value > 0;
    finding.outcome = certain ? Outcome::waste : Outcome::undecided;
    if (finding.share_of_run >= kLeastShare) findings.push_back(std::move(finding));
  }
}

}  // namespace

std::vector<Finding> find(const Inputs& inputs, const std::vector<Group>& groups,
                          Comparison& comparison) {
  std::vector<Finding> findings = fold(inputs, groups, comparison);
  add_unmatched(inputs, comparison, Side::a, findings);
  add_unmatched(inputs, comparison, Side::b, findings);
  std::sort(findings.begin(), findings.end(), [](const Finding& x, const Finding& y) {
    const bool open_x = x.outcome == Outcome::undecided;
    const bool open_y = y.outcome == Outcome::undecided;
    if (open_x != open_y) return open_y;
    if (x.saving.joules != y.saving.joules) return x.saving.joules > y.saving.joules;
    return std::tie(x.cause.key, x.regions) < std::tie(y.cause.key, y.regions);
  });
  for (std::size_t i = 0; i < findings.size(); ++i) findings[i].rank = i + 1;
  return findings;
}

}  // namespace joulediff::diagnose
