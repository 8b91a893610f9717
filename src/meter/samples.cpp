// A ring's samples are stamped by the driver. A field is polled: a new value was made somewhere
// between two polls, 50 ms apart, which is no time to compare milliseconds of kernels with. But the
// sensor makes them on a lattice, and polls drift along it: the one lattice that has a point
// between the two polls around each new value is known to within a millisecond after some seconds.
#include "meter/samples.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

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

std::complex<double> vector_sum(const std::vector<News>& all, double period) {
  std::complex<double> sum;
  for (const News& one : all)
    sum += std::polar(1.0, 2 * std::numbers::pi * std::remainder(one.middle() / period, 1.0));
  return sum;
}

struct Lattice {
  double period = 0, phase = 0, half_width = 0;  // ns
  double point(double number) const { return phase + number * period; }
};

// By how much the lattice can be shifted with a point of it between each two polls; negative: by
// how much the worst is missed.
double room(const std::vector<News>& all, const std::vector<double>& number, double period,
            double& middle) {
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < all.size(); ++i) {
    low = std::max(low, all[i].after - number[i] * period);
    high = std::min(high, all[i].until - number[i] * period);
  }
  middle = (low + high) / 2;
  return high - low;
}

std::optional<Lattice> lattice(const run::Series& series, const std::vector<News>& all) {
  const Property near = rhythm(series).period;
  if (all.size() < kFewest || !near.identified()) return std::nullopt;
  const double count = (all.back().until - all.front().after) / (1e9 * near.value);
  // The period at which all phases agree best, then the one that leaves the lattice most room.
  constexpr double kSteps = 8, kReach = 0.01;
  double period = 1e9 * near.value, most = 0;
  for (double ratio = 1 - kReach; ratio <= 1 + kReach; ratio += 1 / (kSteps * count))
    if (const double here = std::norm(vector_sum(all, 1e9 * near.value * ratio)); here > most) {
      most = here;
      period = 1e9 * near.value * ratio;
    }
  const double phase = std::arg(vector_sum(all, period)) / (2 * std::numbers::pi) * period;
  std::vector<double> number;
  for (const News& one : all) number.push_back(std::round((one.middle() - phase) / period));
  Lattice found;
  double low = period * (1 - 0.5 / count), high = period * (1 + 0.5 / count);
  double middle = 0;
  for (int i = 0; i < 50; ++i) {  // the room is concave in the period
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (room(all, number, a, middle) < room(all, number, b, middle) ? low : high) =
        room(all, number, a, middle) < room(all, number, b, middle) ? a : b;
  }
  found.period = (low + high) / 2;
  const double left = room(all, number, found.period, found.phase);
  found.half_width = std::abs(left) / 2;
  if (1e-9 * found.half_width > kMostDoubt) return std::nullopt;
  return found;
}

std::optional<PowerSamples> polled(const run::Series& series, Nanoseconds begin, Nanoseconds end) {
  const std::vector<News> all = news(series);
  const auto found = lattice(series, all);
  if (!found) return std::nullopt;
  PowerSamples samples{series.source, {}, {}, std::llround(found->half_width), std::nullopt};
  for (const News& one : all) {
    const double number = std::round((one.middle() - found->phase) / found->period);
    const Nanoseconds at = series.time.front() + std::llround(found->point(number));
    if (at <= begin || at > end) continue;
    samples.end.push_back(at);
    samples.watts.push_back(one.watts);
  }
  return samples;
}

// Of equal spacing but for what the driver dithers; each is a mean over that.
std::optional<PowerSamples> stamped(const run::Series& series, Nanoseconds begin, Nanoseconds end) {
  const Property period = rhythm(series).period;
  if (!period.identified()) return std::nullopt;
  PowerSamples samples{series.source, {}, {}, 0, period.value};
  for (std::size_t i = 0; i < series.time.size(); ++i)
    if (series.time[i] > begin && series.time[i] <= end) {
      samples.end.push_back(series.time[i]);
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
    if (found && found->end.size() >= kFewest) all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace joulediff::meter
