#include "rules/worth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "meter/spread.h"
#include "rules/grammar_rules.h"

namespace joulediff::rules {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The part that is an estimate may be off by the whole of itself, on each side by itself: one
// meter on both does not see it.
Fact estimated(const Point& p) {
  if (p.boundary.estimated_share) return p.boundary.estimated_share;
  if (p.boundary.estimated.empty()) return 0;
  return {};
}

Fact systematic(const Point& p) {
  if (scaled_by_pue(p)) return {};
  return p.meter.uncertainty;
}

// Of the mean of the runs, from their spread; none for fewer than two.
Fact between_runs(const std::vector<double>& runs) {
  if (runs.size() < 2) return {};
  std::vector<double> logs;
  logs.reserve(runs.size());
  for (const double one : runs) logs.push_back(std::log(one));
  return std::expm1(meter::spread_of_mean(logs));
}

double within_window(const Point& p) {
  if (p.energy.uncertainty) return *p.energy.uncertainty;
  if (!p.window.seconds || !(*p.window.seconds > 0)) return 0;
  const double edge = std::max(p.clock.skew.value_or(0), p.sampling.period.value_or(0) / 2);
  return std::min(1.0, 2 * edge / *p.window.seconds);  // of a window that is elsewhere: all
}

}  // namespace

Interval Interval::unbounded(double value) {
  return {value, -kInfinite, kInfinite};
}

bool Interval::bounded() const {
  return std::isfinite(low) && std::isfinite(high);
}

Interval operator-(const Interval& x, const Interval& y) {
  const double value = x.value - y.value;
  if (!x.bounded() || !y.bounded()) return Interval::unbounded(value);
  return {value, value - std::hypot(x.value - x.low, y.high - y.value),
          value + std::hypot(x.high - x.value, y.value - y.low)};
}

Interval operator/(const Interval& x, const Interval& y) {
  const double value = x.value / y.value;
  if (!x.bounded() || !y.bounded() || (y.low <= 0 && y.high >= 0))
    return Interval::unbounded(value);
  const auto [low, high] =
      std::minmax({x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high});
  return {value, low, high};
}

Fact Margin::with_systematic() const {
  if (!systematic || !random) return {};
  return std::hypot(*systematic, *random);
}

Margin margin_of(const Point& p) {
  Margin margin;
  margin.systematic = systematic(p);
  const double window = within_window(p);
  if (const Fact runs = between_runs(p.repeats.joules)) {
    margin.random = std::max(window, *runs);  // the spread holds what each run is off by
  } else if (p.kind != "run") {               // a recording that was not repeated has no floor
    margin.random = std::hypot(window, assumed_spread(p));
    margin.assumed = true;
  }
  const Fact share = estimated(p);
  if (!share)
    margin.random.reset();
  else if (margin.random)
    margin.random = std::hypot(*margin.random, *share);
  return margin;
}

double known_error(const Point& p, bool with_systematic) {
  const double random =
      std::hypot(std::max(within_window(p), between_runs(p.repeats.joules).value_or(0)),
                 estimated(p).value_or(0));
  return with_systematic ? std::hypot(random, p.meter.uncertainty.value_or(0)) : random;
}

double assumed_spread(const Point& p) {
  const Fact watts = load_watts(p);
  return watts && *watts >= 100 ? 0.01 : 0.03;
}

bool measured_alike(const Point& a, const Point& b) {
  return !a.meter.serial.empty() && a.meter.serial == b.meter.serial && !a.meter.range.empty() &&
         a.meter.range == b.meter.range && a.boundary.conversion == b.boundary.conversion &&
         scaled_by_pue(a) == scaled_by_pue(b) &&
         (!scaled_by_pue(a) || (a.facility.pue == b.facility.pue &&
                                a.facility.energy_boundary == b.facility.energy_boundary));
}

bool scaled_by_pue(const Point& p) {
  return p.facility.pue && p.boundary.kind == "facility" && !p.facility.energy_boundary.empty() &&
         p.facility.energy_boundary != "facility";
}

std::string standing_of(const Point& p) {
  if (scaled_by_pue(p))
    return fmt::format("modelled: the energy of the {} times a PUE of {}",
                       p.facility.energy_boundary, said(p.facility.pue));
  std::string text = said(p.energy.standing);
  if (!p.boundary.estimated.empty() || p.boundary.estimated_share.value_or(0) > 0)
    text += fmt::format(", but for {} ({})",
                        p.boundary.estimated_share ? format_percent(*p.boundary.estimated_share)
                                                   : "an unknown share",
                        p.boundary.estimated.empty() ? "estimated" : p.boundary.estimated);
  if (p.boundary.conversion && *p.boundary.conversion != 1)
    text += fmt::format(", by an efficiency of {}", said(p.boundary.conversion));
  return text;
}

std::optional<Interval> per_unit(const Point& p, const Fact& relative) {
  const Fact joules = p.per_unit();
  if (!joules || !std::isfinite(*joules)) return {};
  if (!relative) return Interval::unbounded(*joules);
  return Interval{*joules, std::max(0.0, *joules * (1 - *relative)), *joules * (1 + *relative)};
}

}  // namespace joulediff::rules
