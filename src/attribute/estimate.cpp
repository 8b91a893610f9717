#include "attribute/estimate.h"

#include <algorithm>
#include <cmath>

#include "attribute/fitted.h"

namespace joulediff::attribute {
namespace {

// Of the time in which operators ran, replays must cover this much to stand for the rest.
constexpr double kMost = 0.5;

// Dynamic watts of replayed operators while their kernels run, weighted by their time in the trace.
struct TypicalPower {
  double watts = 0;
  double spread = 0;        // of one operator's, 95 %
  double clock = 0;         // watts: what the replays' clock leaves open
  double static_ratio = 0;  // replay seconds for each kernel second
  std::size_t operators = 0;
};

TypicalPower typical_power(const std::vector<UnitCost>& units, const std::vector<Usage>& usage) {
  TypicalPower result;
  double weight = 0, sum = 0, squares = 0, static_seconds = 0, clock = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!units[i].known || usage[i].share <= 0) continue;
    const double share = usage[i].share;
    const double watts = units[i].joules * usage[i].calls / share;
    weight += share;
    sum += watts * share;
    squares += watts * watts * share;
    static_seconds += units[i].static_seconds * usage[i].calls;
    clock += units[i].common * usage[i].calls;
    ++result.operators;
  }
  if (result.operators == 0) return result;
  result.watts = sum / weight;
  result.clock = clock / weight;
  result.static_ratio = static_seconds / weight;
  const double deviation = std::sqrt(std::max(0.0, squares / weight - result.watts * result.watts));
  // Of one or two operators nothing is known about the others but that they draw something.
  constexpr std::size_t kEnough = 3;
  result.spread = result.operators < kEnough ? result.watts : 2 * deviation;
  return result;
}

bool is_missing(const UnitCost& unit, const Usage& usage) {
  return !unit.known && usage.calls > 0;
}

void by_time(const TypicalPower& typical, const std::vector<Usage>& usage, std::size_t group,
             std::vector<UnitCost>& units) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!is_missing(units[i], usage[i])) continue;
    const double seconds = usage[i].share / usage[i].calls;
    units[i] = {true,
                typical.watts * seconds,
                typical.spread * seconds,
                typical.clock * seconds,
                typical.static_ratio * seconds,
                group,
                Standing::estimated};
  }
}

}  // namespace

void estimate(const Traced& traced, std::vector<UnitCost>& units, Diagnostics& diagnostics) {
  const std::vector<Usage>& usage = traced.spent.usage;
  double known = 0, missing = 0;
  for (std::size_t i = 0; i < units.size(); ++i)
    (is_missing(units[i], usage[i]) ? missing : known) += usage[i].share;
  if (missing <= 0) return;
  const TypicalPower typical = typical_power(units, usage);
  if (typical.operators > 0 && known >= kMost * (known + missing))
    by_time(typical, usage, traced.run.signatures.size(), units);
  else
    fit_units(traced, units, diagnostics);
}

}  // namespace joulediff::attribute
