// When a sensor says something new.
//
// Updates are seen late (a poll apart), some are not seen at all (the value was the same, or nobody
// looked), and the sensor's own timer wavers. So gaps are not averaged: the updates of a stretch
// lie on a lattice, and the period is that at which their phases agree best (the largest sum of
// unit vectors). One period is found for all stretches together; then each gives its own near it,
// and what those differ by is the interval. The jitter is what is left of the stamps' distances to
// the lattice when the polls' share is taken off.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>
#include <span>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/tools/minima.hpp>
#include <fmt/format.h>

#include "meter/sensor.h"
#include "meter/spread.h"

namespace joulediff::meter {
namespace {

constexpr std::size_t kStretch = 32;  // updates
constexpr std::size_t kFewestStretches = 4;
constexpr std::size_t kShortest = 6;  // updates
constexpr int kBits = 24;             // of the minimiser's precision

using Stamps = std::span<const Nanoseconds>;

std::complex<double> vector_sum(Stamps stamps, double period) {
  std::complex<double> sum;
  for (const Nanoseconds stamp : stamps) {
    const double turns = static_cast<double>(stamp - stamps.front()) / period;
    sum += std::polar(1.0, 2 * std::numbers::pi * (turns - std::floor(turns)));
  }
  return sum;
}

std::vector<double> gaps(const std::vector<Nanoseconds>& times) {
  std::vector<double> all;
  for (std::size_t i = 1; i < times.size(); ++i)
    all.push_back(static_cast<double>(times[i] - times[i - 1]));
  return all;
}

std::vector<Stamps> stretches(const std::vector<Nanoseconds>& time) {
  const std::size_t length = std::min(kStretch, time.size() / kFewestStretches);
  std::vector<Stamps> all;
  if (length < kShortest) return all;
  for (std::size_t i = 0; i + length <= time.size(); i += length)
    all.emplace_back(time.data() + i, length);
  return all;
}

// The period at which the phases of each stretch agree best, all stretches together.
double common_period(const std::vector<Stamps>& all, double near) {
  const auto disagreement = [&](double period) {
    double sum = 0;
    for (const Stamps& one : all) sum -= std::norm(vector_sum(one, period));
    return sum;
  };
  constexpr double kReach = 0.2, kSteps = 8;
  const double step = 1 / (kSteps * static_cast<double>(all.front().size()));
  double best = near, least = disagreement(near);
  for (double ratio = 1 - kReach; ratio < 1 + kReach; ratio += step)
    if (const double here = disagreement(ratio * near); here < least) {
      least = here;
      best = ratio * near;
    }
  return boost::math::tools::brent_find_minima(disagreement, best - step * near, best + step * near,
                                               kBits)
      .first;
}

double own_period(Stamps stamps, double common) {
  const double reach = common / static_cast<double>(2 * stamps.size());
  return boost::math::tools::brent_find_minima(
             [&](double period) { return -std::norm(vector_sum(stamps, period)); }, common - reach,
             common + reach, kBits)
      .first;
}

// Sum of squares about the lattice, in the period's unit.
double squares_about(Stamps stamps, double period) {
  const double phase = std::arg(vector_sum(stamps, period)) / (2 * std::numbers::pi);
  double squares = 0;
  for (const Nanoseconds stamp : stamps) {
    const double turns = static_cast<double>(stamp - stamps.front()) / period - phase;
    squares += std::pow((turns - std::round(turns)) * period, 2);
  }
  return squares;
}

Property period_of(const std::vector<Stamps>& all, double common) {
  std::vector<double> own;
  for (const Stamps& one : all) own.push_back(1e-9 * own_period(one, common));
  const double period = mean(own), half = spread_of_mean(own);
  return {period, period - half, period + half, {}};
}

Property jitter_of(const std::vector<Stamps>& all, double common, const Updates& updates) {
  double squares = 0, freedom = 0, polls = 0;
  for (const Stamps& one : all) {
    squares += squares_about(one, own_period(one, common));
    freedom += static_cast<double>(one.size()) - 2;
  }
  for (const Nanoseconds half : updates.half_width)
    polls += std::pow(static_cast<double>(half), 2) / 3 / static_cast<double>(updates.size());
  const boost::math::chi_squared distribution(freedom);
  const auto seconds = [&](double variance) {
    return 1e-9 * std::sqrt(std::max(0.0, variance - polls));
  };
  return {seconds(squares / freedom),
          seconds(squares / boost::math::quantile(distribution, 0.975)),
          seconds(squares / boost::math::quantile(distribution, 0.025)),
          {}};
}

Property tick_of(const run::Series& series) {
  // By chance n differences have a common divisor of their own with a chance of 2^-n.
  constexpr std::size_t kEnough = 8;
  std::int64_t common = 0;
  std::size_t differences = 0;
  for (std::size_t i = 1; i < series.value.size(); ++i)
    if (series.value[i] != series.value[i - 1]) {
      common = std::gcd(common, series.value[i] - series.value[i - 1]);
      ++differences;
    }
  if (differences < kEnough)
    return Property::unknown(fmt::format("only {} changes of its value", differences));
  const double tick = unit(series.source) * static_cast<double>(common);
  return {tick, tick, tick, {}};
}

}  // namespace

bool is_power(run::Source source) {
  using enum run::Source;
  return source == nvml_power_samples || source == nvml_power_instant ||
         source == nvml_power_average || source == nvml_power_memory ||
         source == nvml_power_module || source == amd_power || source == hwmon_power ||
         source == external_power;
}

double unit(run::Source source) {
  using enum run::Source;
  if (source == nvml_energy) return 1e-3;
  if (run::is_energy_counter(source) || source == hwmon_power) return 1e-6;
  return is_power(source) ? 1e-3 : 0;
}

Updates updates(const run::Series& series) {
  const double scale = unit(series.source);
  // Samples that the driver stamps itself are new each; else a value that is there again is old.
  const bool stamped = series.source == run::Source::nvml_power_samples;
  const auto fresh = [&](std::size_t i) {
    return stamped || series.value[i] != series.value[i - 1];
  };
  std::vector<Nanoseconds> seen;
  for (std::size_t i = 1; i < series.time.size(); ++i)
    if (fresh(i)) seen.push_back(series.time[i]);
  const double usual = seen.size() < 2 ? 0 : median(gaps(seen));
  Updates all;
  for (std::size_t i = 1; i < series.time.size(); ++i) {
    if (!fresh(i)) continue;
    Nanoseconds time = series.time[i];
    Nanoseconds half = series.uncertainty.empty() ? 0 : series.uncertainty[i];
    const Nanoseconds poll = time - series.time[i - 1];
    if (!stamped && half == 0 && static_cast<double>(poll) < usual / 2) {
      time -= poll / 2;
      half = poll / 2;
    }
    all.time.push_back(time);
    all.half_width.push_back(half);
    all.value.push_back(scale * static_cast<double>(series.value[i]));
  }
  return all;
}

Updates powers(const Updates& counter) {
  constexpr double kImplausibleWatts = 5000;
  Updates all;
  for (std::size_t i = 1; i < counter.size(); ++i) {
    const double seconds = to_seconds(counter.time[i] - counter.time[i - 1]).value;
    const double watts = seconds > 0 ? (counter.value[i] - counter.value[i - 1]) / seconds : -1;
    if (watts < 0 || watts > kImplausibleWatts) continue;
    all.time.push_back(counter.time[i]);
    all.half_width.push_back(counter.half_width[i]);
    all.value.push_back(watts);
  }
  return all;
}

Rhythm rhythm(const run::Series& series) {
  const Updates seen = updates(series);
  Rhythm result{{}, {}, tick_of(series)};
  const std::vector<Stamps> all = stretches(seen.time);
  if (all.empty()) {
    result.period = Property::unknown(fmt::format("only {} updates", seen.size()));
    result.jitter = result.period;
    return result;
  }
  const double common = common_period(all, median(gaps(seen.time)));
  result.period = period_of(all, common);
  result.jitter = jitter_of(all, common, seen);
  return result;
}

}  // namespace joulediff::meter
