// What `compare` finds: every matched region with its difference and verdict, the findings in order
// of saving, and a first cause for each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/attribute.h"
#include "diagnose/noise.h"
#include "match/match.h"
#include "rules/rules.h"
#include "run/model.h"

namespace joulediff::diagnose {

enum class Outcome { waste, trade_off, equal, undecided };
enum class Side { a, b };
enum class CauseKind {
  operators,
  redundant,
  layout,
  kernel,
  setting,
  argument,
  branch,
  host,
  waiting
};
enum class CauseStanding { confirmed, likely, open };

std::string_view name(Outcome);
std::string_view name(CauseKind);
std::string_view name(CauseStanding);

struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
  bool operator==(const Place&) const = default;
};

// A relative difference (b-a)/max(a,b) with its interval.
struct Difference {
  double value = 0;
  double low = 0;
  double high = 0;
};

// One side of a region.
struct RegionSide {
  std::vector<run::OperatorId> operators;
  Energy energy;      // per step
  Seconds seconds;    // per step
  bool known = true;  // false: an operator has no known cost, and `energy` is of the others
  std::optional<Place> where;        // innermost frame outside the runtimes
  std::optional<Place> called_from;  // innermost frame in the user's own tree
};

struct RegionResult {
  std::size_t region = 0;  // index in Match::regions
  RegionSide a;
  RegionSide b;
  Difference difference;
  // Relative: the larger one of the spread between blocks of one side and of the machine's.
  std::optional<double> noise_floor;
  bool outputs_agree = true;
  bool inputs_differ = false;
  match::MatchedBy matched_by = match::MatchedBy::value;
  Outcome outcome = Outcome::undecided;
};

struct Cause {
  CauseKind kind = CauseKind::operators;
  std::string
      key;  // reference vocabulary: "operators:aten.gelu", "setting:float32_matmul_precision"
  std::string message;  // one line for a person
  CauseStanding standing = CauseStanding::open;
  std::optional<Place> where;
  std::optional<Place> called_from;
};

// Regions with the same cause at the same place (the layers of a model) are one finding.
struct Finding {
  std::size_t rank = 0;              // from 1
  Side side = Side::a;               // the wasteful one
  std::vector<std::size_t> regions;  // indices in Comparison::regions
  Outcome outcome = Outcome::waste;
  Energy saving;            // per step
  double share_of_run = 0;  // of the wasteful side's measured energy
  Difference difference;
  Cause cause;
  std::string advice;
  std::string known_issue;  // empty: none
};

struct Unmatched {
  std::vector<run::OperatorId> operators;
  Energy energy;
  bool known = true;  // false: as of RegionSide
};

struct Comparison {
  rules::Verdict comparable;
  std::vector<RegionResult> regions;
  Unmatched unmatched_a;
  Unmatched unmatched_b;
  std::vector<Finding> findings;
  Difference whole;                   // per work unit
  Difference gate;                    // (B-A)/A per work unit
  std::optional<double> noise_floor;  // of the whole run; none: the gate is undecided
  std::optional<Noise> machine;       // what was kept of the machine; in the floors above
};

struct Inputs {
  const run::Run& a;
  const run::Run& b;
  const attribute::Attribution& cost_a;
  const attribute::Attribution& cost_b;
  const match::Match& match;
  const rules::Verdict& comparable;
};

Comparison compare(const Inputs& inputs);

// Fails if B surely needs more than `limit` (0.05: 5 %) more than A per work unit, passes if it
// surely does not; undecided else, where it would fail for a difference under the noise floor, and
// always without a noise floor.
enum class Gate { passed, failed, undecided };
Gate gate(const Comparison& comparison, double limit);
std::string_view name(Gate);

}  // namespace joulediff::diagnose
