#include "simulate/readings.h"

#include <algorithm>
#include <optional>

namespace joulediff::simulate {
namespace {

struct Span {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
};

// The value that a reader would get at `time`: the last that was published.
std::optional<std::size_t> last_before(const run::Series& series, Nanoseconds time) {
  const auto after = std::ranges::upper_bound(series.time, time);
  if (after == series.time.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - series.time.begin()) - 1;
}

double milli(const run::Series& series, std::size_t i) {
  return 1e-3 * static_cast<double>(series.value[i]);
}

// Read at the begin and at the end; what it has at each is up to a tick old.
std::optional<double> at_both_ends(const run::Series& counter, Span span) {
  if (counter.time.back() < span.end) return std::nullopt;  // it fell meanwhile
  const auto first = last_before(counter, span.begin), last = last_before(counter, span.end);
  if (!first || !last) return std::nullopt;
  return milli(counter, *last) - milli(counter, *first);
}

std::optional<double> mean_times_time(const run::Series& power, Span span) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < power.time.size(); ++i)
    if (power.time[i] >= span.begin && power.time[i] <= span.end) {
      sum += milli(power, i);
      ++count;
    }
  if (count == 0) return std::nullopt;
  return sum / count * to_seconds(span.end - span.begin).value;
}

// The line from each reading to the next, from the begin to the end.
std::optional<double> interpolated(const run::Series& power, Span span) {
  if (power.time.size() < 2 || power.time.front() > span.begin || power.time.back() < span.end)
    return std::nullopt;
  double joules = 0;
  for (std::size_t i = 1; i < power.time.size(); ++i) {
    const Nanoseconds from = std::max(span.begin, power.time[i - 1]);
    const Nanoseconds to = std::min(span.end, power.time[i]);
    if (to <= from) continue;
    const double length = to_seconds(power.time[i] - power.time[i - 1]).value;
    const double rise = (milli(power, i) - milli(power, i - 1)) / length;
    const double middle = to_seconds(from + (to - from) / 2 - power.time[i - 1]).value;
    joules += (milli(power, i - 1) + rise * middle) * to_seconds(to - from).value;
  }
  return joules;
}

// Each sample stands for the time since the one before it.
std::optional<double> held(const run::Series& ring, Span span) {
  if (ring.time.empty() || ring.time.front() > span.begin || ring.time.back() < span.end)
    return std::nullopt;
  double joules = 0;
  Nanoseconds before = span.begin;
  for (std::size_t i = 0; i < ring.time.size() && before < span.end; ++i) {
    if (ring.time[i] <= before) continue;
    const Nanoseconds to = std::min(span.end, ring.time[i]);
    joules += milli(ring, i) * to_seconds(to - before).value;
    before = to;
  }
  return joules;
}

}  // namespace

std::vector<Reading> readings(const Recording& recording) {
  using enum run::Source;
  struct Way {
    run::Source source;
    const char* meter;
    std::optional<double> (*read)(const run::Series&, Span);
  };
  constexpr Way kWays[] = {
      {nvml_energy, "energy counter, read at both ends", at_both_ends},
      {nvml_power_samples, "ring of power samples, added up", held},
      {nvml_power_instant, "instant power, mean x time", mean_times_time},
      {nvml_power_instant, "instant power, interpolated", interpolated},
      {nvml_power_average, "1 s average power, mean x time", mean_times_time},
      {nvml_power_average, "1 s average power, interpolated", interpolated},
  };
  const WindowTruth& trace = recording.truth.windows.front();
  std::vector<Reading> result;
  for (const Way& way : kWays)
    for (const run::Series& series : recording.run.blocks.front().series) {
      if (series.source != way.source || series.time.empty()) continue;
      const auto joules = way.read(series, {trace.begin, trace.end});
      if (joules) result.push_back({way.meter, *joules, *joules / trace.joules - 1});
    }
  return result;
}

}  // namespace joulediff::simulate
