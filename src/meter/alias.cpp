#include "meter/alias.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "meter/spread.h"

namespace joulediff::meter {
namespace {

constexpr std::size_t kParts = 8;
constexpr double kSamePulse = 0.15;

double seconds_between(Nanoseconds from, Nanoseconds to) {
  return to_seconds(to - from).value;
}

// Mean of readings, each weighted by the time since the one before it, and its standard error from
// the parts.
struct Level {
  double watts = 0, error = 0;
};
std::optional<Level> level(const Updates& readings, std::size_t first, std::size_t last) {
  const auto mean_of = [&](std::size_t from, std::size_t to) {
    double joules = 0, seconds = 0;
    for (std::size_t i = from; i < to; ++i) {
      const double time = seconds_between(readings.time[i - 1], readings.time[i]);
      joules += time * readings.value[i];
      seconds += time;
    }
    return joules / seconds;
  };
  first = std::max<std::size_t>(first, 1);
  if (last < first + kParts) return std::nullopt;
  std::vector<double> parts;
  for (std::size_t part = 0; part < kParts; ++part)
    parts.push_back(mean_of(first + part * (last - first) / kParts,
                            first + (part + 1) * (last - first) / kParts));
  return Level{mean_of(first, last), spread_of_mean(parts) / student_t(kParts)};
}

std::size_t index(const Updates& readings, Nanoseconds time) {
  return static_cast<std::size_t>(std::ranges::lower_bound(readings.time, time) -
                                  readings.time.begin());
}

// What it reads in pauses of the load, `settle` after it ended.
std::optional<double> idle(const Updates& readings, const Intervals& busy, Nanoseconds settle) {
  std::vector<double> values;
  for (std::size_t i = 0; i + 1 < busy.size(); ++i) {
    const std::size_t last = index(readings, busy[i + 1].first);
    for (std::size_t k = index(readings, busy[i].second + settle); k < last; ++k)
      values.push_back(readings.value[k]);
  }
  if (values.size() < kParts) return std::nullopt;
  return median(std::move(values));
}

// The largest part of the load's period on which no update falls.
double unseen(const Updates& readings, std::size_t first, std::size_t last, const Pulses& load) {
  std::vector<double> phases;
  for (std::size_t i = first; i < last; ++i) {
    const double turns = seconds_between(load.begin, readings.time[i]) / load.period;
    phases.push_back(turns - std::floor(turns));
  }
  if (phases.empty()) return 1;
  std::ranges::sort(phases);
  double largest = phases.front() + 1 - phases.back();
  for (std::size_t i = 1; i < phases.size(); ++i)
    largest = std::max(largest, phases[i] - phases[i - 1]);
  return largest;
}

bool alike(double x, double y, double tolerance) {
  return std::abs(x - y) <= tolerance * std::max(x, y);
}

struct Seen {
  Pulses load;
  bool in_step = false;
  double joules = 0, error = 0;  // of one pulse above idle
};

// What the same pulses are read as at periods that are not in step.
Property misread(const Seen& one, const std::vector<Seen>& all) {
  std::vector<double> others;
  double squares = 0;
  for (const Seen& other : all)
    if (&other != &one && !other.in_step && alike(other.load.length, one.load.length, kSamePulse)) {
      others.push_back(other.joules);
      squares += other.error * other.error;
    }
  if (others.empty())
    return Property::unknown("the same pulses were recorded at no period that is not in step");
  const auto n = static_cast<double>(others.size());
  const double usual = mean(others);
  if (usual <= 0) return Property::unknown("it does not see the pulses");
  const double spread = others.size() < 2 ? 0 : spread_of_mean(others) / student_t(others.size());
  const double error = std::hypot(one.error, std::max(std::sqrt(squares) / n, spread)) / usual;
  const double ratio = one.joules / usual - 1, half = student_t(kParts) * error;
  return {ratio, ratio - half, ratio + half, {}};
}

}  // namespace

std::vector<Pulses> pulses(const Intervals& busy) {
  constexpr std::size_t kFewest = 12;
  constexpr double kShortest = 1.5, kRegular = 0.03, kLeastRegular = 0.9, kBreak = 0.35;
  std::vector<Pulses> all;
  const auto period = [&](std::size_t i) {
    return seconds_between(busy[i].first, busy[i + 1].first);
  };
  const auto length = [&](std::size_t i) { return seconds_between(busy[i].first, busy[i].second); };
  const auto add = [&](std::size_t first, std::size_t last) {  // pulses [first, last]
    if (last - first + 1 < kFewest) return;
    std::vector<double> periods, lengths;
    for (std::size_t i = first; i < last; ++i) periods.push_back(period(i));
    for (std::size_t i = first; i <= last; ++i) lengths.push_back(length(i));
    const double usual = median(periods);
    const auto regular =
        std::ranges::count_if(periods, [&](double one) { return alike(one, usual, kRegular); });
    const double lasts = seconds_between(busy[first].first, busy[last].second);
    if (lasts >= kShortest &&
        static_cast<double>(regular) >= kLeastRegular * static_cast<double>(periods.size()))
      all.push_back({busy[first].first, busy[last].second, lengths.size(), usual, mean(lengths)});
  };
  std::size_t first = 0;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const bool ends = i + 1 == busy.size() || !alike(length(i), length(i + 1), kBreak) ||
                      (i > first && !alike(period(i), period(i - 1), kBreak));
    if (!ends) continue;
    add(first, i);
    first = i + 1;
  }
  return all;
}

std::vector<Alias> aliases(const Updates& readings, const Intervals& busy, double settle) {
  constexpr double kUnseen = 0.25;
  const auto back = static_cast<Nanoseconds>(1e9 * settle);
  const auto floor = idle(readings, busy, back);
  std::vector<Alias> result;
  if (!floor) return result;
  std::vector<Seen> seen;
  for (const Pulses& load : pulses(busy)) {
    const std::size_t first = index(readings, load.begin + back), last = index(readings, load.end);
    const auto here = level(readings, first, last);
    if (!here) continue;
    seen.push_back({load, unseen(readings, first, last, load) > kUnseen,
                    (here->watts - *floor) * load.period, here->error * load.period});
  }
  for (const Seen& one : seen)
    result.push_back({one.load.period, one.load.length, one.in_step, misread(one, seen)});
  return result;
}

}  // namespace joulediff::meter
