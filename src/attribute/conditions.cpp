#include "attribute/conditions.h"

#include <algorithm>
#include <cmath>

#include "meter/spread.h"

namespace joulediff::attribute {
namespace {

template <class Visit>
void each_sample(const run::Block& block, run::Source source,
                 const std::vector<meter::Reading>& windows, Visit visit) {
  const auto series = std::ranges::find(block.series, source, &run::Series::source);
  if (series == block.series.end()) return;
  for (const meter::Reading& window : windows) {
    const auto first = std::ranges::lower_bound(series->time, window.begin);
    for (auto i = static_cast<std::size_t>(first - series->time.begin());
         i < series->time.size() && series->time[i] <= window.end; ++i)
      visit(series->value[i]);
  }
}

constexpr std::size_t kFewestSamples = 3;

}  // namespace

void add(Diagnostics& diagnostics, Severity severity, std::string rule, std::string message) {
  const auto same = std::ranges::find(diagnostics, rule, &Diagnostic::rule);
  if (same != diagnostics.end()) {
    ++same->count;
    return;
  }
  diagnostics.push_back({severity, std::move(rule), std::move(message)});
}

std::optional<double> mean_over(const run::Block& block, run::Source source,
                                const std::vector<meter::Reading>& windows) {
  double sum = 0;
  std::size_t count = 0;
  each_sample(block, source, windows, [&](std::int64_t value) {
    sum += static_cast<double>(value);
    ++count;
  });
  if (count < kFewestSamples) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::optional<double> held_back(const run::Block& block,
                                const std::vector<meter::Reading>& windows) {
  // Software power cap, hardware slowdown, software and hardware thermal slowdown, power brake.
  constexpr std::int64_t kLimits = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
  std::size_t count = 0, held = 0;
  each_sample(block, run::Source::nvml_throttle, windows, [&](std::int64_t value) {
    ++count;
    if ((value & kLimits) != 0) ++held;
  });
  if (count < kFewestSamples) return std::nullopt;
  return static_cast<double>(held) / static_cast<double>(count);
}

std::optional<double> drift(const std::vector<meter::Reading>& readings) {
  constexpr std::size_t kFewest = 8;
  if (readings.size() < kFewest) return std::nullopt;
  const auto count = static_cast<double>(readings.size());
  double mean_time = 0, mean_power = 0;
  for (const meter::Reading& one : readings) {
    mean_time += to_seconds(one.begin + (one.end - one.begin) / 2).value / count;
    mean_power += one.power().value / count;
  }
  double tt = 0, tp = 0, pp = 0;
  for (const meter::Reading& one : readings) {
    const double t = to_seconds(one.begin + (one.end - one.begin) / 2).value - mean_time;
    const double p = one.power().value - mean_power;
    tt += t * t;
    tp += t * p;
    pp += p * p;
  }
  const double slope = tp / tt;
  const double error = std::sqrt(std::max(0.0, pp - slope * tp) / (count - 2) / tt);
  // Student's t for count - 2 degrees of freedom.
  if (mean_power <= 0 || std::abs(slope) <= meter::student_t(readings.size() - 1) * error)
    return std::nullopt;
  const double span = to_seconds(readings.back().end - readings.front().begin).value;
  return slope * span / mean_power;
}

std::optional<double> locked_period(double step_seconds) {
  // The counter moves every 100 ms and the power ring every 20 ms; higher multiples than these
  // average over enough phases.
  constexpr double kPeriods[] = {0.1, 0.02};
  constexpr double kHighest = 4, kWithin = 0.02;
  if (!(step_seconds > 0)) return std::nullopt;
  for (const double period : kPeriods) {
    const double ratio = std::max(step_seconds / period, period / step_seconds);
    const double nearest = std::round(ratio);
    if (nearest <= kHighest && std::abs(ratio - nearest) <= kWithin * nearest) return period;
  }
  return std::nullopt;
}

}  // namespace joulediff::attribute
