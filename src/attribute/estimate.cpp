#include "attribute/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "attribute/conditions.h"
#include "attribute/regression.h"

namespace joulediff::attribute {
namespace {

// Of the time in which operators ran, replays must cover this much to stand for the rest.
constexpr double kMost = 0.5;
constexpr std::size_t kWindows = 100;

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

// Operators of one signature are a class; kernels that belong to no operator are the last one.
class Windows {
 public:
  Windows(const Traced& traced, const std::vector<UnitCost>& units)
      : traced_(traced), units_(units), class_of_(units.size()) {
    std::map<run::SignatureId, std::size_t> classes;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (is_missing(units[i], traced.spent.usage[i]))
        class_of_[i] =
            1 +
            classes.try_emplace(traced.run.operators[i].signature, classes.size()).first->second;
    count_ = classes.size();
  }

  std::size_t classes() const { return count_; }
  std::size_t class_of(std::size_t op) const { return class_of_[op] - 1; }

  PowerWindow window(const meter::Reading& reading, const Timeline& spent) const {
    PowerWindow window{(reading.energy.joules - traced_.floor.watts * reading.seconds()).value,
                       reading.energy.half_width().value, std::vector<double>(count_ + 1)};
    double others = spent.busy;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const Usage& usage = spent.usage[i];
      others -= usage.share;
      if (class_of_[i] > 0)
        window.seconds[class_of_[i] - 1] += usage.share;
      else
        window.joules -= usage.calls * units_[i].joules;
    }
    window.seconds.back() = std::max(0.0, others);
    return window;
  }

 private:
  const Traced& traced_;
  const std::vector<UnitCost>& units_;
  std::vector<std::size_t> class_of_;  // 0: known
  std::size_t count_ = 0;
};

void by_windows(const Traced& traced, std::vector<UnitCost>& units, Diagnostics& diagnostics) {
  const Windows windows(traced, units);
  std::vector<PowerWindow> seen;
  for (const meter::Reading& part :
       meter::parts(traced.meter, traced.block, traced.reading, kWindows))
    seen.push_back(windows.window(
        part, timeline(traced.run, traced.trace, traced.recognition, part.begin, part.end)));
  // Before the windows are looked at, a watt is as good as another: the mean, give or take itself.
  const PowerWindow whole = windows.window(traced.reading, traced.spent);
  double busy = 0;
  for (const double seconds : whole.seconds) busy += seconds;
  if (busy <= 0) return;
  const double mean = std::max(0.0, whole.joules / busy);
  const auto powers =
      regress(seen, std::vector<ClassPower>(windows.classes() + 1, ClassPower{mean, mean, false}));

  std::size_t told = 0, fitted = 0;
  const std::size_t no_group = traced.run.signatures.size();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Usage& usage = traced.spent.usage[i];
    if (!is_missing(units[i], usage)) continue;
    const ClassPower& power = powers[windows.class_of(i)];
    const run::SignatureId signature = traced.run.operators[i].signature;
    const double seconds = usage.share / usage.calls;
    units[i] = {true,
                power.watts * seconds,
                power.half_width * seconds,
                0,
                seconds,
                power.told && signature.valid() ? signature.index() : no_group,
                Standing::estimated};
    told += power.told;
    ++fitted;
  }
  add(diagnostics, Severity::note, "attribute.fitted",
      fmt::format("{} operators were not replayed: their joules are fitted to the energy of the "
                  "trace itself, {} by how it goes with what runs, the others by their share of "
                  "the time. So `unattributed` is what the fit left. Record with a replay pass to "
                  "measure them",
                  fitted, told));
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
    by_windows(traced, units, diagnostics);
}

}  // namespace joulediff::attribute
