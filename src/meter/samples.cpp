// A ring's samples are stamped by the driver. A field is polled: a new value was made somewhere
// between two polls, 50 ms apart, which is no time to compare milliseconds of kernels with. But the
// sensor makes them on a lattice, and polls drift along it: the one lattice that has a point
// between the two polls around each new value is known to within a millisecond after some seconds.
#include "meter/samples.h"

#include <algorithm>
#include <cmath>

#include "meter/sensor.h"

namespace joulediff::meter {
namespace {

constexpr std::size_t kFewest = 24;  // new values
constexpr double kMostDoubt = 0.01;  // seconds, of the lattice

// A value that was new at the second of these polls.
struct News {
  double after = 0, until = 0;  // ns since the first
  double watts = 0;
  double middle() const { return (after + until) / 2; }
};

std::vector<News> news(const run::Series& series) {
  std::vector<News> all;
  const auto since = [&](std::size_t i) {
    return static_cast<double>(series.time[i] - series.time.front());
  };
  for (std::size_t i = 1; i < series.time.size(); ++i)
    if (series.value[i] != series.value[i - 1])
      all.push_back(
          {since(i - 1), since(i), unit(series.source) * static_cast<double>(series.value[i])});
  return all;
}

struct Lattice {
  double period = 0, phase = 0;  // ns; a point of it near the middle of what was asked for
  double half_width = 0;         // of that point
  double drift = 0;              // half width of the period, relative
};

struct Piece {
  double low = 0, high = 0;
};

// Where the point of the lattice that is nearest `middle` may lie, so that there is one between
// each two polls, to within what the sensor's timer wavers by: parts of one period around it.
std::vector<Piece> possible(const std::vector<News>& all, double period, double middle) {
  constexpr double kWavers = 5e5;
  std::vector<Piece> pieces{{middle - period / 2, middle + period / 2}};
  for (const News& one : all) {
    // As many periods away that it begins within this one.
    const double away = std::floor((one.after - middle) / period + 0.5) * period;
    const double low = one.after - kWavers - away, high = one.until + kWavers - away;
    if (high - low >= period) continue;  // there is one between any two such polls
    std::vector<Piece> left;
    for (const Piece& piece : pieces)
      for (const double turn : {-period, 0.0, period}) {
        const Piece both{std::max(piece.low, low + turn), std::min(piece.high, high + turn)};
        if (both.low < both.high) left.push_back(both);
      }
    pieces = std::move(left);
    if (pieces.empty()) break;
  }
  return pieces;
}

// All that are possible, those of neighbouring periods together. `middle`: ns since the first poll.
std::vector<Lattice> lattices(const run::Series& series, const std::vector<News>& all,
                              double middle) {
  const Property near = rhythm(series).period;
  if (all.size() < kFewest || !near.identified()) return {};
  constexpr double kReach = 0.01;
  constexpr double kSmear = 2.5e5;  // ns, of the farthest point
  const double usual = 1e9 * near.value;
  const double farthest = std::max(middle, all.back().until - middle) / usual;
  const double step = kSmear / farthest / usual;
  struct Found {
    Piece phases, periods;
  };
  std::vector<Found> found;
  for (double ratio = 1 - kReach; ratio <= 1 + kReach; ratio += step) {
    const double period = usual * ratio;
    for (Piece one : possible(all, period, middle)) {
      if (found.empty() || period - found.back().periods.high > 3 * step * usual) {
        found.push_back({one, {period, period}});
        continue;
      }
      // The same point, or the next one.
      Found& last = found.back();
      const double away = std::round(
          ((one.low + one.high) / 2 - (last.phases.low + last.phases.high) / 2) / period);
      last.phases = {std::min(last.phases.low, one.low - away * period),
                     std::max(last.phases.high, one.high - away * period)};
      last.periods.high = period;
    }
  }
  std::vector<Lattice> result;
  for (const auto& [phases, periods] : found)
    if (phases.high - phases.low <= 2e9 * kMostDoubt)
      result.push_back({(periods.low + periods.high) / 2, (phases.low + phases.high) / 2,
                        (phases.high - phases.low) / 2,
                        (periods.high / periods.low - 1 + step) / 2});
  return result;
}

std::optional<PowerSamples> polled(const run::Series& series, Nanoseconds begin, Nanoseconds end) {
  constexpr Nanoseconds kMargin = 250'000'000;  // the longest period and poll
  const std::vector<News> all = news(series);
  const auto since = [&](Nanoseconds time) {
    return static_cast<double>(time - series.time.front());
  };
  const auto found = lattices(series, all, since(begin + (end - begin) / 2));
  if (found.empty()) return std::nullopt;
  PowerSamples samples;
  samples.source = series.source;
  for (const Lattice& one : found)
    samples.stamps.push_back({{}, std::llround(one.half_width), one.drift});
  for (const News& one : all) {
    if (one.after < since(begin + kMargin) || one.until > since(end - kMargin)) continue;
    samples.watts.push_back(one.watts);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double number = std::round((one.middle() - found[i].phase) / found[i].period);
      samples.stamps[i].end.push_back(series.time.front() +
                                      std::llround(found[i].phase + number * found[i].period));
    }
  }
  return samples;
}

// Of equal spacing but for what the driver dithers; each is a mean over that.
std::optional<PowerSamples> stamped(const run::Series& series, Nanoseconds begin, Nanoseconds end) {
  const Property period = rhythm(series).period;
  if (!period.identified()) return std::nullopt;
  PowerSamples samples;
  samples.source = series.source;
  samples.window = period.value;
  samples.stamps.resize(1);
  for (std::size_t i = 0; i < series.time.size(); ++i)
    if (series.time[i] > begin && series.time[i] <= end) {
      samples.stamps.front().end.push_back(series.time[i]);
      samples.watts.push_back(unit(series.source) * static_cast<double>(series.value[i]));
    }
  return samples;
}

}  // namespace

std::vector<PowerSamples> power_samples(const Meter& meter, const run::Block& block,
                                        Nanoseconds begin, Nanoseconds end) {
  std::vector<PowerSamples> all;
  for (const run::Series& series : block.series) {
    const bool ours = meter.channels.empty() ||
                      (meter.channels.size() == 1 && series.channel == meter.channels.front());
    if (!ours || series.time.empty()) continue;
    std::optional<PowerSamples> found;
    if (series.source == run::Source::nvml_power_samples) found = stamped(series, begin, end);
    if (series.source == run::Source::nvml_power_instant) found = polled(series, begin, end);
    if (found && found->watts.size() >= kFewest) all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace joulediff::meter
