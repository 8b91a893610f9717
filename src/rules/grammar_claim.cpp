// What was held still, how often it was measured, and what is disclosed.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>

#include "rules/grammar_rules.h"
#include "rules/worth.h"

namespace joulediff::rules {
namespace {

bool claims(const Point& a, const Point& b) {
  return !a.claim.empty() || !b.claim.empty();
}

Severity for_claim(const Point& a, const Point& b) {
  return claims(a, b) ? Severity::error : Severity::warning;
}

struct Spread {
  double mean = 0;
  double error_squared = 0;  // of the mean
  double degrees = 0;
};

Spread spread(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Spread s;
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - s.mean) * (value - s.mean);
  s.degrees = n - 1;
  s.error_squared = n > 1 ? squares / (n - 1) / n : 0;
  return s;
}

std::vector<double> logs(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) result.push_back(std::log(value));
  return result;
}

// Mean and half width at 95 % of log(b/a): of pairs where the runs took turns, else Welch's.
std::pair<double, double> log_ratio(const Point& a, const Point& b) {
  const std::vector<double> x = logs(a.repeats.joules), y = logs(b.repeats.joules);
  Spread s;
  const bool paired =
      x.size() == y.size() && a.repeats.order == "interleaved" && b.repeats.order == "interleaved";
  if (paired) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < x.size(); ++i) differences.push_back(y[i] - x[i]);
    s = spread(differences);
  } else {
    const Spread u = spread(x), v = spread(y);
    s.mean = v.mean - u.mean;
    s.error_squared = u.error_squared + v.error_squared;
    const double parts = u.error_squared * u.error_squared / u.degrees +
                         v.error_squared * v.error_squared / v.degrees;
    s.degrees = parts > 0 ? s.error_squared * s.error_squared / parts : u.degrees + v.degrees;
  }
  const boost::math::students_t distribution(std::max(1.0, s.degrees));
  return {s.mean, boost::math::quantile(distribution, 0.975) * std::sqrt(s.error_squared)};
}

bool repeated(const Point& a, const Point& b) {
  return a.repeats.joules.size() >= 2 && b.repeats.joules.size() >= 2;
}

Fact count_of(const Point& p) {
  if (p.repeats.count) return p.repeats.count;
  if (!p.repeats.joules.empty()) return static_cast<double>(p.repeats.joules.size());
  return {};
}

}  // namespace

Objected control_equal(const Point& a, const Point& b) {
  Differences d;
  d.of("clocks", a.control.clocks, b.control.clocks)
      .of("power cap", a.control.power_cap, b.control.power_cap)
      .of("governor", a.control.governor, b.control.governor)
      .of("fans", a.control.fans, b.control.fans)
      .of("persistence", a.control.persistence, b.control.persistence)
      .of("MIG", a.control.mig, b.control.mig);
  if (!d.any()) return {};
  const bool hardware = a.claim == "hardware" || b.claim == "hardware";
  return object(hardware ? Severity::error : Severity::warning,
                fmt::format("the machines are set differently: {}", d.text()),
                "set both alike, or claim the setting");
}

Objected drift(const Point& p) {
  const bool moved = p.control.clock_change && std::abs(*p.control.clock_change) > 0.02;
  if (p.control.throttled.value_or(false))
    return object(Severity::warning,
                  "the device throttled within the window" +
                      (moved ? fmt::format(", and its clocks moved by {}",
                                           format_percent(*p.control.clock_change))
                             : ""),
                  "cool it, or lock clocks that it can hold");
  if (!moved) return {};
  return object(
      Severity::warning,
      fmt::format("clocks moved by {} within the window", format_percent(*p.control.clock_change)),
      "lock the clocks, or warm up for longer");
}

Objected warm_up(const Point& p) {
  if (!p.thermal.slope || std::abs(*p.thermal.slope) <= 0.01) return {};
  return object(Severity::warning,
                fmt::format("power still moves by {} over the last half of the window",
                            format_percent(*p.thermal.slope)),
                "warm up for longer before the window");
}

Objected temperature_equal(const Point& a, const Point& b) {
  Differences d;
  d.of("cooling", a.thermal.cooling, b.thermal.cooling);
  const Fact &x = a.thermal.start_celsius, &y = b.thermal.start_celsius;
  if (x && y && std::abs(*x - *y) > 5) d.of("temperature at the start in C", x, y);
  if (!d.any()) return {};
  return object(Severity::warning, fmt::format("the temperatures differ: {}", d.text()),
                "start both warm, under the same cooling");
}

Objected software_equal(const Point& a, const Point& b) {
  Differences d;
  d.of("driver", a.software.driver, b.software.driver)
      .of("framework", a.software.framework, b.software.framework)
      .of("compiler", a.software.compiler, b.software.compiler)
      .of("kernel", a.software.kernel, b.software.kernel);
  if (!d.any()) return {};
  const bool both = differ(a.hardware.device, b.hardware.device);
  return object(
      Severity::warning,
      fmt::format("{}: {}",
                  both ? "software and hardware changed together" : "the software differs",
                  d.text()),
      "change one at a time");
}

Objected repeats(const Point& p) {
  const double needed = p.kind == "tiny" ? 5 : 3;
  const Fact count = count_of(p);
  if (!count || *count < needed)
    return object(Severity::warning,
                  fmt::format("{} of at least {:.0f} runs",
                              count ? said(count) : "an unknown number", needed),
                  "repeat the run, the sides taking turns");
  if (p.repeats.order != "sequential") return {};
  return object(Severity::warning, "the runs were made one side after the other",
                "let the sides take turns, or draw the order by lot");
}

Objected interval(const Point& a, const Point& b) {
  if (!repeated(a, b)) return {};
  const auto [mean, half] = log_ratio(a, b);
  if (std::abs(mean) > half) return {};
  return object(for_claim(a, b),
                fmt::format("the difference of {} lies inside its 95 % interval of +-{}",
                            format_percent(std::expm1(mean)), format_percent(std::expm1(half))),
                "repeat more often, or claim no difference");
}

Objected budget(const Point& a, const Point& b) {
  const Fact change = relative_change(a, b);
  if (!change || (!a.meter.uncertainty && !b.meter.uncertainty && !repeated(a, b))) return {};
  const bool one_meter = measured_alike(a, b);
  const double error = std::hypot(known_error(a, !one_meter), known_error(b, !one_meter));
  if (std::abs(*change) > error) return {};
  return object(for_claim(a, b),
                fmt::format("the difference of {} is within the errors of both, {}{}",
                            format_percent(*change), format_percent(error),
                            one_meter ? " (the meter's own cancels)" : ""),
                "use one meter in one range, longer windows, more runs");
}

Objected noise_floor_without_repeats(const Point& a, const Point& b) {
  const Fact change = relative_change(a, b), watts = load_watts(a);
  if (!change || !watts || repeated(a, b)) return {};
  const double floor = assumed_spread(a);
  if (std::abs(*change) > floor) return {};
  return object(
      Severity::warning,
      fmt::format("one run each and a difference of {}: two runs of one program differ by "
                  "as much ({})",
                  format_percent(*change), format_percent(floor)),
      "repeat both");
}

Objected trimming(const Point& p) {
  if (p.repeats.trimming.empty() || p.repeats.trimming == "none" ||
      p.repeats.dropped_disclosed.value_or(true))
    return {};
  return object(
      Severity::warning,
      fmt::format("runs were dropped ({}), and which is not disclosed", p.repeats.trimming),
      "list all runs");
}

Objected trimming_equal(const Point& a, const Point& b) {
  if (!differ(a.repeats.trimming, b.repeats.trimming)) return {};
  return object(Severity::warning,
                fmt::format("the runs are summarised differently: {} against {}",
                            a.repeats.trimming, b.repeats.trimming),
                "use one rule for both");
}

Objected same_runs(const Point& p) {
  if (!differ(p.repeats.energy_runs, p.repeats.performance_runs)) return {};
  return object(Severity::error,
                fmt::format("energy is of the runs {}, performance of {}",
                            said(p.repeats.energy_runs), said(p.repeats.performance_runs)),
                "take both from the same runs");
}

Objected mandatory_fields(const Point& p) {
  if (p.disclosure.missing.empty()) return {};
  constexpr std::size_t kNamed = 4;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, p.disclosure.missing.size()); ++i)
    names += (i > 0 ? ", " : "") + p.disclosure.missing[i];
  if (p.disclosure.missing.size() > kNamed)
    names += fmt::format(" and {} more", p.disclosure.missing.size() - kNamed);
  return object(Severity::warning,
                fmt::format("{} mandatory {} empty or missing: {}", p.disclosure.missing.size(),
                            p.disclosure.missing.size() == 1 ? "field is" : "fields are", names),
                "fill them in");
}

Objected integrity(const Point& p) {
  if (p.disclosure.hashes_match.value_or(true)) return {};
  return object(Severity::error, "files are not those that the manifest was made of",
                "file the session as the tools left it");
}

Objected label(const Point& p) {
  const std::string& l = p.disclosure.label;
  if (l == "official" || l == "derived" || l == "unverified") return {};
  return object(Severity::warning,
                l.empty() ? "it is not said whether the figure is official, derived or unverified"
                          : fmt::format("\"{}\" is none of official, derived, unverified", l),
                "label the figure");
}

}  // namespace joulediff::rules
