// Energy between ticks.
//
// A counter says how much, but not when: the sampler knows each tick only to within the time of the
// read that first saw it. Over a window of n ticks the energy is exact and the window is not, so
// the error is the power times the uncertainty of both ends, the same for a short and a long
// window; that is why windows are cut at ticks, never at the instants that were asked for. Counters
// also fail: they stand still, fall back to 0 when a driver restarts, return 0 when a read fails,
// or leap when permission arrives. Each of these ends a stretch; the longest one is used, and where
// it is too short the answer is none, never 0.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "meter/meter.h"

namespace joulediff::meter {
namespace {

struct Tick {
  Nanoseconds time = 0;
  double joules = 0;
  double uncertainty = 0;  // seconds, half width
};

// How a source counts.
struct Scale {
  double joules_per_unit;
  double resolution;                // joules
  Nanoseconds default_uncertainty;  // where the sampler states none
  bool steps;                       // moves in ticks: a repeated value is no new reading
};

// A tick lies anywhere within its uncertainty; of the difference of two such errors 95 % are within
// this many times the root of their squares.
constexpr double kBothEnds = 1.1;
// No board or package draws this much; what seems to is a counter that leapt.
constexpr double kImplausibleWatts = 5000;
// Ticks closer than this are judged over this time, since a late read shifts a tick.
constexpr double kShortestInterval = 0.05;

const run::Series* find(const run::Block& block, run::Source source) {
  const auto found = std::ranges::find(block.series, source, &run::Series::source);
  return found == block.series.end() ? nullptr : &*found;
}

// Processor time comes in nanoseconds or, from older interfaces, in hundredths of a second.
std::int64_t quantum(const run::Series& series, std::size_t first, std::size_t last) {
  std::int64_t common = 0;
  for (std::size_t i = first + 1; i < last && common != 1; ++i)
    common = std::gcd(common, series.value[i] - series.value[i - 1]);
  return std::min<std::int64_t>(std::max<std::int64_t>(common, 1), 10'000'000);
}

Scale scale(const run::Series& series, std::size_t first, std::size_t last) {
  if (series.source == run::Source::host_cpu) {
    const double unit = 1e-9 * kBusyCore.middle.value;
    return {unit, unit * static_cast<double>(quantum(series, first, last)), 1'000'000, false};
  }
  // 61 uJ is the coarsest unit of a package's counter.
  if (series.source == run::Source::rapl_package) return {1e-6, 61e-6, 1'000'000, true};
  return {1e-3, 1e-3, 10'000'000, true};
}

std::vector<Tick> longest_stretch(const Meter& meter, const run::Block& block, Nanoseconds begin,
                                  Nanoseconds end) {
  const run::Series* series = find(block, meter.source);
  if (series == nullptr) return {};
  const auto& time = series->time;
  const auto first = static_cast<std::size_t>(std::ranges::lower_bound(time, begin) - time.begin());
  const auto last = static_cast<std::size_t>(std::ranges::upper_bound(time, end) - time.begin());
  if (first >= last) return {};
  const Scale unit = scale(*series, first, last);
  const auto failed = [&](std::int64_t value) { return unit.steps ? value <= 0 : value < 0; };

  std::vector<Tick> best, current;
  const auto close = [&] {
    if (current.size() > best.size()) best.swap(current);
    current.clear();
  };
  // A counter's value at the begin may have ticked before it: look at the reading before.
  std::optional<std::int64_t> previous;
  for (std::size_t i = first; i-- > 0 && !previous;)
    if (!failed(series->value[i])) previous = series->value[i];
  for (std::size_t i = first; i < last; ++i) {
    const std::int64_t value = series->value[i];
    if (failed(value)) continue;
    if (unit.steps && previous && value == *previous) continue;
    previous = value;
    const Nanoseconds half =
        series->uncertainty.empty() ? unit.default_uncertainty : series->uncertainty[i];
    const Tick tick{time[i], unit.joules_per_unit * static_cast<double>(value),
                    to_seconds(half).value};
    if (!current.empty()) {
      const Tick& before = current.back();
      const double seconds =
          to_seconds(tick.time - before.time).value + tick.uncertainty + before.uncertainty;
      const double joules = tick.joules - before.joules;
      if (joules < 0 || joules > kImplausibleWatts * std::max(seconds, kShortestInterval)) close();
    }
    current.push_back(tick);
  }
  close();
  return best;
}

double resolution(const Meter& meter, const run::Block& block, Nanoseconds begin, Nanoseconds end) {
  const run::Series* series = find(block, meter.source);
  if (series == nullptr) return 0;
  const auto& time = series->time;
  return scale(*series,
               static_cast<std::size_t>(std::ranges::lower_bound(time, begin) - time.begin()),
               static_cast<std::size_t>(std::ranges::upper_bound(time, end) - time.begin()))
      .resolution;
}

}  // namespace

std::vector<Nanoseconds> ticks(const Meter& meter, const run::Block& block, Nanoseconds begin,
                               Nanoseconds end) {
  std::vector<Nanoseconds> times;
  for (const Tick& tick : longest_stretch(meter, block, begin, end)) times.push_back(tick.time);
  return times;
}

std::optional<Reading> read(const Meter& meter, const run::Block& block, Nanoseconds begin,
                            Nanoseconds end) {
  const std::vector<Tick> stretch = longest_stretch(meter, block, begin, end);
  if (stretch.size() < static_cast<std::size_t>(kMinimumTicks)) return std::nullopt;
  const Tick& first = stretch.front();
  const Tick& last = stretch.back();
  if (last.time <= first.time) return std::nullopt;
  const double joules = last.joules - first.joules;
  const double watts = joules / to_seconds(last.time - first.time).value;
  const double half_width = kBothEnds * watts * std::hypot(first.uncertainty, last.uncertainty) +
                            resolution(meter, block, first.time, last.time);
  return Reading{first.time, last.time,
                 Energy::around(Joules(joules), Joules(half_width), meter.standing)};
}

std::vector<Reading> parts(const Meter& meter, const run::Block& block, const Reading& reading) {
  constexpr std::size_t kMostParts = 10;
  constexpr std::size_t kIntervals = kMinimumTicks - 1;
  const std::vector<Nanoseconds> times = ticks(meter, block, reading.begin, reading.end);
  if (times.empty()) return {};
  const std::size_t intervals = times.size() - 1;
  const std::size_t count = std::min(kMostParts, intervals / kIntervals);
  if (count < 3) return {};
  std::vector<Reading> result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = i * intervals / count, to = (i + 1) * intervals / count;
    if (auto part = read(meter, block, times[from], times[to])) result.push_back(*part);
  }
  return result;
}

std::optional<double> ring_disagreement(const run::Block& block, const Reading& reading) {
  constexpr Nanoseconds kLongestGap = 100'000'000;
  const run::Series* ring = find(block, run::Source::nvml_power_samples);
  if (ring == nullptr || reading.energy.joules <= Joules(0)) return std::nullopt;
  const auto& time = ring->time;
  auto i = static_cast<std::size_t>(std::ranges::lower_bound(time, reading.begin) - time.begin());
  // A sample stands for the time since the one before it.
  double joules = 0;
  Nanoseconds covered = reading.begin;
  for (; i < time.size() && covered < reading.end; ++i) {
    if (time[i] - covered > kLongestGap) return std::nullopt;
    const Nanoseconds until = std::min(time[i], reading.end);
    joules += 1e-3 * static_cast<double>(ring->value[i]) * to_seconds(until - covered).value;
    covered = until;
  }
  if (covered < reading.end) return std::nullopt;
  return joules / reading.energy.joules.value - 1;
}

}  // namespace joulediff::meter
