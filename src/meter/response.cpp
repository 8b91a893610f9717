// Over how long a window a sensor means, and how late it is.
//
// Every window and lag on a grid is tried (meter/load.h); the pairs whose error is not
// significantly larger than the least are the answer, and the extent of that region is the
// interval. It may fall into several parts: a load that is switched on and off with one period,
// seen by a sensor that looks for a quarter of it, fits windows of 25 and 75 ms alike. A region
// that spans more than a factor of three is no answer, and what it spans is said.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/format.h"
#include "meter/sensor.h"
#include "meter/spread.h"

namespace joulediff::meter {
namespace {

constexpr std::size_t kFewest = 12;
constexpr std::size_t kMost = 1200;  // more say nothing more
constexpr double kLeastExplained = 0.5;
constexpr double kExact = 1e-5;            // of the variance: below it the grid decides, not noise
constexpr double kIndistinct = 3;          // a ratio of windows
constexpr double kIndistinctLags = 100e6;  // ns
constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kShortest = 2 * kMs, kLongest = 3000 * kMs;
// A sensor cannot see ahead, but for the error of its stamps.
constexpr Nanoseconds kEarliest = -20 * kMs, kLatest = 250 * kMs;
constexpr Nanoseconds kCoarse = 4 * kMs, kFine = kMs / 2;

Readings inside(const Updates& updates, const Load& load, Nanoseconds longest) {
  Readings all;
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (updates.time[i] >= load.begin() + longest + kLatest && updates.time[i] <= load.end())
      usable.push_back(i);
  const std::size_t stride = usable.size() / kMost + 1;
  for (std::size_t i = 0; i < usable.size(); i += stride)
    all.add(updates.time[usable[i]], updates.value[usable[i]]);
  all.finish();
  return all;
}

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value, double step) {
    low = std::min(low, value - step);
    high = std::max(high, value + step);
  }
};

struct Tried {
  Fit fit;
  double window_step, lag_step;  // of the grid that it was on, ns
};

void try_window(const Readings& readings, const Load& load, double window, double window_step,
                std::pair<Nanoseconds, Nanoseconds> lags, Nanoseconds step,
                std::vector<Tried>& all) {
  const auto length = static_cast<Nanoseconds>(std::llround(window));
  for (Nanoseconds lag = lags.first; lag <= lags.second; lag += step)
    all.push_back({fit(readings, load, lag, length), window_step, static_cast<double>(step)});
}

std::vector<Tried> try_all(const Readings& readings, const Load& load, Nanoseconds longest,
                           std::optional<double> pinned) {
  std::vector<Tried> all;
  const auto error = [](const Tried& one) { return one.fit.error; };
  const auto best = [&] { return std::ranges::min_element(all, {}, error)->fit; };
  const std::pair<Nanoseconds, Nanoseconds> lags{kEarliest, kLatest};
  if (pinned) {
    const double window = 1e9 * *pinned;
    try_window(readings, load, window, 0, lags, kCoarse, all);
    const Nanoseconds near = best().offset;
    try_window(readings, load, window, 0, {near - kCoarse, near + kCoarse}, kFine, all);
    return all;
  }
  constexpr double kRatio = 1.19, kFineRatio = 1.022;  // 2^(1/4), 2^(1/32)
  for (double window = kShortest; window <= static_cast<double>(longest); window *= kRatio)
    try_window(readings, load, window, 0, lags, kCoarse, all);
  const Fit coarse = best();
  const auto middle = static_cast<double>(coarse.window);
  // The next but one, too: the best of a coarse lag may have the window beside the best.
  constexpr double kReach = kRatio * kRatio;
  for (double window = middle / kReach; window <= middle * kReach; window *= kFineRatio) {
    const auto shift = static_cast<Nanoseconds>((window - middle) / 2);
    const Nanoseconds near = coarse.offset - shift;
    try_window(readings, load, window, (kFineRatio - 1) * window,
               {near - 2 * kCoarse, near + 2 * kCoarse}, kFine, all);
  }
  return all;
}

std::string spans(const Extent& windows) {
  return fmt::format("windows from {} to {} fit alike",
                     format(Seconds(1e-9 * std::max(windows.low, 0.0))),
                     format(Seconds(1e-9 * windows.high)));
}

// The straight line through the readings; `n` independent ones.
void add_line(const Fit& best, const Readings& readings, double n, Response& result) {
  const auto count = static_cast<double>(readings.time.size());
  const double t = student_t(static_cast<std::size_t>(std::max(2.0, n)));
  const double middle = (readings.mean - best.intercept) / best.slope;
  const auto at = [&](double x) {
    const double value = best.intercept + best.slope * x;
    const double half =
        t * std::sqrt(best.error / n * (1 / count + std::pow(x - middle, 2) / best.spread));
    return Property{value, value - half, value + half, {}};
  };
  const double slope = t * std::sqrt(best.error / n / best.spread);
  result.gain = {best.slope, best.slope - slope, best.slope + slope, {}};
  result.at_zero = at(0);
  result.at_one = at(1);
}

// How much larger the errors are of the readings that tell window and lag, near the edges of the
// load, than those of all: stamps that are off by some milliseconds do harm there alone.
double at_edges(const Fit& best, const Readings& readings, const Load& load) {
  constexpr Nanoseconds kStep = 2 * kMs;
  double of_lag = 0, lags = 0, of_window = 0, windows = 0;
  for (std::size_t i = 0; i < readings.time.size(); ++i) {
    const Nanoseconds end = readings.time[i] - best.offset, begin = end - best.window;
    const double here = load.mean(begin, end);
    const double residual = std::pow(readings.value[i] - best.intercept - best.slope * here, 2);
    const double later = std::pow(load.mean(begin + kStep, end + kStep) - here, 2);
    const double longer = std::pow(load.mean(begin - kStep, end) - here, 2);
    of_lag += residual * later;
    lags += later;
    of_window += residual * longer;
    windows += longer;
  }
  const double all = best.error / static_cast<double>(readings.time.size());
  if (all <= 0 || lags <= 0 || windows <= 0) return 1;
  return std::max({1.0, of_lag / lags / all, of_window / windows / all});
}

Response not_told(const std::string& why) {
  const Property unknown = Property::unknown(why);
  return {unknown, unknown, unknown, unknown, unknown};
}

}  // namespace

Response response(const Updates& updates, const Load& load, std::optional<double> window) {
  if (load.empty()) return not_told("no load that is known was recorded");
  const Nanoseconds longest = std::min(kLongest, (load.end() - load.begin()) / 8);
  const Readings readings = inside(updates, load, window ? 0 : longest);
  if (readings.time.size() < kFewest)
    return not_told(fmt::format("only {} readings while the load is known", readings.time.size()));
  if (readings.squares <= 0) return not_told("its readings do not vary");
  if (longest < kShortest) return not_told("the load is known for too short a time");

  const std::vector<Tried> all = try_all(readings, load, longest, window);
  const Fit best =
      std::ranges::min_element(all, {}, [](const Tried& one) { return one.fit.error; })->fit;
  const double explained = 1 - best.error / readings.squares;
  if (explained < kLeastExplained || best.slope <= 0)
    return not_told(fmt::format("the load explains {} of its readings' variance",
                                format_percent(std::max(0.0, explained))));
  const double n = independent(readings, load, best);
  const double limit =
      error_limit(best, n / at_edges(best, readings, load), kExact * readings.squares);
  Extent windows, lags;
  for (const Tried& one : all) {
    if (one.fit.error > limit) continue;
    windows.add(static_cast<double>(one.fit.window), one.window_step);
    lags.add(static_cast<double>(one.fit.offset), one.lag_step);
  }
  Response result;
  result.explained = explained;
  result.residual = std::sqrt(best.error / static_cast<double>(readings.time.size()));
  add_line(best, readings, n, result);
  result.lag = {1e-9 * static_cast<double>(best.offset), 1e-9 * lags.low, 1e-9 * lags.high, {}};
  if (lags.high - lags.low > kIndistinctLags)
    result.lag.why = fmt::format("lags from {} to {} fit alike", format(Seconds(1e-9 * lags.low)),
                                 format(Seconds(1e-9 * lags.high)));
  result.window = {
      1e-9 * static_cast<double>(best.window), 1e-9 * windows.low, 1e-9 * windows.high, {}};
  if (window) {
    result.window = {*window, *window, *window, {}};
  } else if (windows.high > kIndistinct * std::max(windows.low, 1.0)) {
    result.window = Property::unknown(spans(windows));
    result.lag = Property::unknown("it goes with the window, which is not identified");
  } else if (windows.high * 1.1 > static_cast<double>(longest)) {
    result.window =
        Property::unknown("the load is known for too short a time to tell from longer ones");
  }
  return result;
}

Response phase_powers(const Updates& updates, const Load& load, double window) {
  constexpr double kLeastVariation = 0.1;  // standard deviation of the shares
  const Response found = response(updates, load, window);
  if (!found.gain.identified()) return found;
  const auto length = static_cast<Nanoseconds>(1e9 * window);
  const auto lag = static_cast<Nanoseconds>(1e9 * found.lag.value);
  Readings shares;
  for (const Nanoseconds stamp : updates.time)
    if (stamp >= load.begin() && stamp <= load.end())
      shares.add(stamp, load.mean(stamp - lag - length, stamp - lag));
  shares.finish();
  if (std::sqrt(shares.squares / static_cast<double>(shares.time.size())) < kLeastVariation)
    return not_told(
        "the share of a window that was on hardly varies: the window is as long as the load's "
        "period, or a multiple of it");
  return found;
}

}  // namespace joulediff::meter
