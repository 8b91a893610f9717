// Energy between ticks.
//
// A counter says how much, but not when: the sampler knows each tick only to within the time of the
// read that first saw it. Over a window of n ticks the energy is exact and the window is not, so
// the error is the power times the uncertainty of both ends, the same for a short and a long
// window; that is why windows are cut at ticks, never at the instants that were asked for. Counters
// also fail: they stand still, fall back to 0 when a driver restarts, return 0 when a read fails,
// or leap when permission arrives, or break off, which the sampler states by another series, or
// stand still and forget what was drawn meanwhile. Each of these ends a stretch; the longest one is
// used, and where it is too short the answer is none, never 0.
//
// Of several channels (boards, packages) the sum is read at the ticks of the first: the others are
// taken between their own ticks, and a stretch lasts as long as one of each.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "meter/meter.h"
#include "meter/spread.h"
#include "meter/stretch.h"

namespace joulediff::meter {
namespace {

// How a source counts.
struct Scale {
  double joules_per_unit;
  double resolution;                // joules
  Nanoseconds default_uncertainty;  // where the sampler states none
  bool steps;                       // moves in ticks: a repeated value is no new reading
};

bool shows_power(run::Source source) {
  return source == run::Source::hwmon_power || source == run::Source::external_power;
}
double watts_per_unit(run::Source source) {
  return source == run::Source::hwmon_power ? 1e-6 : 1e-3;
}

// What is taken off the stamps of an outside meter.
Nanoseconds delay(const Meter& meter) {
  return meter.alignment ? meter.alignment->delay.value : 0;
}

// A tick lies anywhere within its uncertainty; of the difference of two such errors 95 % are within
// this many times the root of their squares.
constexpr double kBothEnds = 1.1;
// No board or package draws this much; what seems to is a counter that leapt.
constexpr double kImplausibleWatts = 5000;
// Ticks closer than this are judged over this time, since a late read shifts a tick.
constexpr double kShortestInterval = 0.05;

// The channels that a meter adds up, those of the block where it names none.
std::vector<std::string> channels_of(const Meter& meter, const run::Block& block) {
  if (!meter.channels.empty()) return meter.channels;
  std::vector<std::string> all;
  for (const run::Series& series : block.series)
    if (series.source == meter.source && std::ranges::find(all, series.channel) == all.end())
      all.push_back(series.channel);
  return all;
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
  if (series.source == run::Source::amd_energy) return {1e-6, 15.3e-6, 1'000'000, true};
  // 61 uJ is the coarsest unit of a package's counter.
  using enum run::Source;
  if (series.source == rapl_package || series.source == rapl_psys || series.source == hwmon_energy)
    return {1e-6, 61e-6, 1'000'000, true};
  return {1e-3, 1e-3, 10'000'000, true};
}

double watts(const Tick& from, const Tick& to) {
  return (to.joules - from.joules) / to_seconds(to.time - from.time).value;
}

// Whether a counter stood still before tick `i` and forgot what was drawn meanwhile: a long
// interval with less power than on either side of it. One that caught up has as much as they do.
bool forgot(const Stretch& ticks, std::size_t i, double usual) {
  constexpr double kLong = 2.5, kLess = 0.7;
  constexpr std::size_t kBeside = 3;  // intervals
  if (static_cast<double>(ticks[i].time - ticks[i - 1].time) <= kLong * usual) return false;
  std::optional<double> least;
  if (i > 1) least = watts(ticks[i - 1 - std::min(kBeside, i - 1)], ticks[i - 1]);
  if (i + 1 < ticks.size()) {
    const double after = watts(ticks[i], ticks[std::min(i + kBeside, ticks.size() - 1)]);
    least = std::min(least.value_or(after), after);
  }
  return least && watts(ticks[i - 1], ticks[i]) < kLess * *least;
}

// The ticks without a break, divided where the counter forgot.
void divide(Stretch ticks, std::vector<Stretch>& stretches) {
  constexpr std::size_t kFewest = 5;
  std::vector<double> intervals;
  for (std::size_t i = 1; i < ticks.size(); ++i)
    intervals.push_back(static_cast<double>(ticks[i].time - ticks[i - 1].time));
  if (intervals.size() >= kFewest) {
    const double usual = median(intervals);
    for (std::size_t i = ticks.size() - 1; i > 0; --i)
      if (forgot(ticks, i, usual)) {
        const auto at = ticks.begin() + static_cast<std::ptrdiff_t>(i);
        stretches.emplace_back(at, ticks.end());
        ticks.erase(at, ticks.end());
      }
  }
  stretches.push_back(std::move(ticks));
}

// The stretches of one series inside [begin, end].
void add_stretches(const run::Series& series, Nanoseconds begin, Nanoseconds end,
                   std::vector<Stretch>& stretches) {
  const auto& time = series.time;
  const auto first = static_cast<std::size_t>(std::ranges::lower_bound(time, begin) - time.begin());
  const auto last = static_cast<std::size_t>(std::ranges::upper_bound(time, end) - time.begin());
  if (first >= last) return;
  const Scale unit = scale(series, first, last);
  const auto failed = [&](std::int64_t value) { return unit.steps ? value <= 0 : value < 0; };

  Stretch current;
  const auto close = [&] {
    if (current.empty()) return;
    if (unit.steps)
      divide(std::exchange(current, {}), stretches);
    else
      stretches.push_back(std::exchange(current, {}));
  };
  // A counter's value at the begin may have ticked before it: look at the reading before.
  std::optional<std::int64_t> previous;
  for (std::size_t i = first; i-- > 0 && !previous;)
    if (!failed(series.value[i])) previous = series.value[i];
  for (std::size_t i = first; i < last; ++i) {
    const std::int64_t value = series.value[i];
    if (failed(value)) continue;
    if (unit.steps && previous && value == *previous) continue;
    previous = value;
    const Nanoseconds half =
        series.uncertainty.empty() ? unit.default_uncertainty : series.uncertainty[i];
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
}

// The readings of a meter of power inside [begin, end], on our clock.
struct Readings {
  std::size_t first = 0, last = 0;  // one past it
  Nanoseconds interval = 0;         // their median distance
};
Readings readings_of(const run::Series& series, const Meter& meter, Nanoseconds begin,
                     Nanoseconds end) {
  const auto& time = series.time;
  const Nanoseconds late = delay(meter);
  Readings found;
  found.first =
      static_cast<std::size_t>(std::ranges::lower_bound(time, begin + late) - time.begin());
  found.last = static_cast<std::size_t>(std::ranges::upper_bound(time, end + late) - time.begin());
  std::vector<Nanoseconds> intervals;
  for (std::size_t i = found.first + 1; i < found.last; ++i)
    intervals.push_back(time[i] - time[i - 1]);
  if (intervals.empty()) return found;
  const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
  std::ranges::nth_element(intervals, middle);
  found.interval = *middle;
  return found;
}

// A power as the counter that it adds up to: each reading stands for the time since the one before
// it. An end is off by half of that, by what the delay is not known, and by an eighth of the time
// that a reading is a mean over, since that smears an edge of the load.
void add_summed(const run::Series& series, const Meter& meter, Nanoseconds begin, Nanoseconds end,
                std::vector<Stretch>& stretches) {
  constexpr Nanoseconds kMissing = 5;  // intervals without a reading: what was drawn is unknown
  const Readings readings = readings_of(series, meter, begin, end);
  double uncertainty = to_seconds(readings.interval).value / 2;
  if (meter.alignment) {
    const Alignment& known = *meter.alignment;
    uncertainty = std::hypot(uncertainty, to_seconds(known.delay.high - known.delay.low).value / 2,
                             to_seconds(known.window.value).value / 8);
  }
  const double unit = watts_per_unit(series.source);
  Stretch current;
  double joules = 0;
  for (std::size_t i = readings.first; i < readings.last; ++i) {
    const Nanoseconds time = series.time[i] - delay(meter);
    if (!current.empty()) {
      const Nanoseconds since = time - current.back().time;
      if (since > kMissing * readings.interval)
        stretches.push_back(std::exchange(current, {}));
      else
        joules += unit * static_cast<double>(series.value[i]) * to_seconds(since).value;
    }
    current.push_back({time, joules, uncertainty});
  }
  if (!current.empty()) stretches.push_back(std::move(current));
}

// Of a power, what lies between its readings and in none of them: as much as so many random samples
// may be off by.
double unseen(const run::Series& series, const Meter& meter, Nanoseconds begin, Nanoseconds end) {
  const Readings readings = readings_of(series, meter, begin, end);
  const auto count = static_cast<double>(readings.last - readings.first);
  if (readings.interval <= 0 || count < 2) return 0;
  const Nanoseconds seen = meter.alignment ? meter.alignment->window.value : 0;
  const double share =
      std::max(0.0, 1 - static_cast<double>(seen) / static_cast<double>(readings.interval));
  double sum = 0, squares = 0;
  for (std::size_t i = readings.first; i < readings.last; ++i) {
    const double watts = watts_per_unit(series.source) * static_cast<double>(series.value[i]);
    sum += watts;
    squares += watts * watts;
  }
  const double variance = std::max(0.0, squares / count - sum * sum / (count * count));
  return share * 2 * std::sqrt(variance / count) * to_seconds(end - begin).value;
}

std::vector<Stretch> stretches_of(const run::Block& block, const Meter& meter,
                                  const std::string& channel, Nanoseconds begin, Nanoseconds end) {
  std::vector<Stretch> stretches;
  for (const run::Series& series : block.series) {
    if (series.source != meter.source || series.channel != channel) continue;
    if (shows_power(series.source))
      add_summed(series, meter, begin, end, stretches);
    else
      add_stretches(series, begin, end, stretches);
  }
  return stretches;
}

// What a channel stood at between two of its ticks. How its power ran between them is not known, so
// the time is uncertain by a part of their distance.
std::optional<Tick> between(const Stretch& stretch, Nanoseconds time) {
  constexpr double kPart = 1.0 / 8;
  const auto after = std::ranges::lower_bound(stretch, time, {}, &Tick::time);
  if (after == stretch.end()) return std::nullopt;
  if (after->time == time) return *after;
  if (after == stretch.begin()) return std::nullopt;
  const Tick& before = *(after - 1);
  const double distance = to_seconds(after->time - before.time).value;
  const double share = to_seconds(time - before.time).value / distance;
  return Tick{time, before.joules + share * (after->joules - before.joules),
              std::max(before.uncertainty, after->uncertainty) + kPart * distance};
}

// The ticks of `sum`, with what another channel stood at added; a stretch ends where one of the
// other does.
std::vector<Stretch> added(const std::vector<Stretch>& sum, const std::vector<Stretch>& other) {
  std::vector<Stretch> result;
  for (const Stretch& stretch : sum)
    for (const Stretch& beside : other) {
      Stretch both;
      for (const Tick& tick : stretch)
        if (const auto there = between(beside, tick.time))
          both.push_back({tick.time, tick.joules + there->joules,
                          std::max(tick.uncertainty, there->uncertainty)});
      if (!both.empty()) result.push_back(std::move(both));
    }
  return result;
}

// Of a counter that follows the load late, the joules that it had not counted yet at a tick are its
// lag times the power it had come to: a first-order response holds back just that.
double held_back(const Meter& meter, const run::Block& block, const Tick& tick) {
  constexpr Nanoseconds kAround = 250'000'000;
  const auto all = stretches(meter, block, tick.time - kAround, tick.time + kAround);
  for (const Stretch& one : all) {
    const auto here = std::ranges::find(one, tick.time, &Tick::time);
    if (here == one.end() || one.size() < 2) continue;
    const auto before = here == one.begin() ? here : here - 1;
    const auto after = here + 1 == one.end() ? here : here + 1;
    return meter.lag * watts(*before, *after);
  }
  return 0;
}

}  // namespace

std::vector<Stretch> stretches(const Meter& meter, const run::Block& block, Nanoseconds begin,
                               Nanoseconds end) {
  const std::vector<std::string> channels = channels_of(meter, block);
  std::vector<Stretch> sum;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    std::vector<Stretch> own = stretches_of(block, meter, channels[i], begin, end);
    sum = i == 0 ? std::move(own) : added(sum, own);
  }
  return sum;
}

const Stretch* longest(const std::vector<Stretch>& all) {
  const auto found = std::ranges::max_element(all, {}, &Stretch::size);
  return found == all.end() ? nullptr : &*found;
}

namespace {

double resolution(const Meter& meter, const run::Block& block, Nanoseconds begin, Nanoseconds end) {
  double squares = 0;
  for (const std::string& channel : channels_of(meter, block))
    for (const run::Series& series : block.series) {
      if (series.source != meter.source || series.channel != channel) continue;
      if (shows_power(series.source)) {
        squares += std::pow(unseen(series, meter, begin, end), 2);
        continue;
      }
      const auto& time = series.time;
      const auto first = std::ranges::lower_bound(time, begin) - time.begin();
      const auto last = std::ranges::upper_bound(time, end) - time.begin();
      if (first >= last) continue;
      const Scale unit =
          scale(series, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
      squares += unit.resolution * unit.resolution;
    }
  return std::sqrt(squares);
}

}  // namespace

std::vector<Nanoseconds> ticks(const Meter& meter, const run::Block& block, Nanoseconds begin,
                               Nanoseconds end) {
  std::vector<Nanoseconds> times;
  const std::vector<Stretch> all = stretches(meter, block, begin, end);
  if (const Stretch* best = longest(all))
    for (const Tick& tick : *best) times.push_back(tick.time);
  return times;
}

std::optional<Reading> read(const Meter& meter, const run::Block& block, Nanoseconds begin,
                            Nanoseconds end) {
  const std::vector<Stretch> all = stretches(meter, block, begin, end);
  const Stretch* best = longest(all);
  if (!best || best->size() < static_cast<std::size_t>(kMinimumTicks)) return std::nullopt;
  const Tick& first = best->front();
  const Tick& last = best->back();
  if (last.time <= first.time) return std::nullopt;
  const double watts = meter::watts(first, last);
  double joules = last.joules - first.joules;
  if (meter.lag > 0) joules += held_back(meter, block, last) - held_back(meter, block, first);
  const double half_width = kBothEnds * watts * std::hypot(first.uncertainty, last.uncertainty) +
                            resolution(meter, block, first.time, last.time);
  return Reading{first.time, last.time,
                 Energy::around(Joules(joules), Joules(half_width), meter.standing),
                 all.size() > 1};
}

std::vector<Reading> parts(const Meter& meter, const run::Block& block, const Reading& reading,
                           std::size_t most) {
  constexpr std::size_t kIntervals = kMinimumTicks - 1;
  const std::vector<Nanoseconds> times = ticks(meter, block, reading.begin, reading.end);
  if (times.empty()) return {};
  const std::size_t intervals = times.size() - 1;
  const std::size_t count = std::min(most, intervals / kIntervals);
  if (count < 3) return {};
  std::vector<Reading> result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = i * intervals / count, to = (i + 1) * intervals / count;
    if (auto part = read(meter, block, times[from], times[to])) result.push_back(*part);
  }
  return result;
}

std::optional<double> ring_disagreement(const Meter& meter, const run::Block& block,
                                        const Reading& reading) {
  constexpr Nanoseconds kLongestGap = 100'000'000;
  const std::vector<std::string> channels = channels_of(meter, block);
  const auto ring = std::ranges::find_if(block.series, [&](const run::Series& series) {
    return series.source == run::Source::nvml_power_samples && channels.size() == 1 &&
           series.channel == channels.front();
  });
  if (ring == block.series.end() || reading.energy.joules <= Joules(0)) return std::nullopt;
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
