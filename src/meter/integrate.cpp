#include "meter/integrate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace joulediff::meter {
namespace {

struct Point {
  Nanoseconds time;
  double watts;
};

bool usable(double watts) {
  return std::isfinite(watts) && std::abs(watts) < kOverflow;
}

double at(const Point& left, const Point& right, Nanoseconds time) {
  const double share =
      static_cast<double>(time - left.time) / static_cast<double>(right.time - left.time);
  return left.watts + (right.watts - left.watts) * share;
}

// Points in order of time; beyond the first and the last the power is held.
Joules trapezoid(const std::vector<Point>& points, Nanoseconds begin, Nanoseconds end) {
  const auto after = [&](Nanoseconds time) {
    return std::ranges::lower_bound(points, time, {}, &Point::time);
  };
  const auto value = [&](Nanoseconds time) {
    const auto right = after(time);
    if (right == points.end()) return points.back().watts;
    if (right == points.begin() || right->time == time) return right->watts;
    return at(*(right - 1), *right, time);
  };
  double joules = 0;
  Point last{begin, value(begin)};
  for (auto i = after(begin); i != points.end() && i->time < end; ++i) {
    joules += (last.watts + i->watts) / 2 * to_seconds(i->time - last.time).value;
    last = *i;
  }
  return Joules(joules + (last.watts + value(end)) / 2 * to_seconds(end - last.time).value);
}

double mean_between(const std::vector<Point>& points, Nanoseconds begin, Nanoseconds end) {
  double sum = 0;
  std::size_t n = 0;
  for (auto i = std::ranges::lower_bound(points, begin, {}, &Point::time);
       i != points.end() && i->time <= end; ++i, ++n)
    sum += i->watts;
  return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(n);
}

// Steps between the readings inside, from the one before the window to the one behind it.
void gaps(const std::vector<Point>& points, Nanoseconds begin, Nanoseconds end, Integral& result) {
  std::vector<Nanoseconds> steps;
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i - 1].time >= begin && points[i].time <= end)
      steps.push_back(points[i].time - points[i - 1].time);
  if (steps.empty()) return;
  result.max_gap = to_seconds(*std::ranges::max_element(steps));
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  const double period = static_cast<double>(*middle);
  result.median_gap = to_seconds(*middle);
  for (const Nanoseconds step : steps)
    if (static_cast<double>(step) > 1.5 * period)
      result.missing +=
          static_cast<std::size_t>(std::llround(static_cast<double>(step) / period) - 1);
}

// Relative change of the power over the last half, by least squares.
double slope(const std::vector<Point>& points, Nanoseconds begin, Nanoseconds end) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  const Nanoseconds half = begin + (end - begin) / 2;
  for (const Point& point : points) {
    if (point.time < half || point.time > end || point.watts <= 0) continue;
    const double t = to_seconds(point.time - half).value;
    n += 1;
    x += t;
    y += point.watts;
    xx += t * t;
    xy += t * point.watts;
  }
  const double spread = n * xx - x * x;
  if (n < 3 || spread <= 0 || y <= 0) return 0;
  return (n * xy - x * y) / spread * to_seconds(end - half).value / (y / n);
}

}  // namespace

std::optional<Integral> integrate(const Readings& readings, Nanoseconds begin, Nanoseconds end) {
  if (readings.time.size() != readings.watts.size() || end <= begin) return {};
  Integral result;
  std::vector<Point> points, positive;
  points.reserve(readings.time.size());
  double sum = 0, sum_positive = 0;
  std::size_t finite = 0, above = 0;
  Nanoseconds first_inside = 0, last_inside = 0;
  for (std::size_t i = 0; i < readings.time.size(); ++i) {
    const Nanoseconds time = readings.time[i];
    const double watts = readings.watts[i];
    const bool inside = time >= begin && time <= end;
    if (inside) ++result.inside;
    if (!points.empty() && time <= points.back().time) {
      if (inside) ++(time == points.back().time ? result.duplicates : result.backward);
      continue;
    }
    if (!usable(watts)) {
      if (inside) ++(std::isnan(watts) ? result.not_numbers : result.overflows);
      continue;
    }
    points.push_back({time, watts});
    if (watts > 0) positive.push_back({time, watts});
    if (time < begin && watts > 0) {
      result.least_before =
          result.known_before ? std::min(result.least_before, Watts(watts)) : Watts(watts);
      result.known_before = true;
    }
    if (!inside) continue;
    if (finite == 0) first_inside = time;
    last_inside = time;
    ++finite;
    sum += watts;
    result.peak = std::max(result.peak, Watts(watts));
    if (watts > 0) {
      ++above;
      sum_positive += watts;
    } else {
      ++result.nonpositive;
    }
  }
  if (above < 2) return {};
  result.mean = Watts(sum / static_cast<double>(finite));
  result.mean_positive = Watts(sum_positive / static_cast<double>(above));
  result.head = to_seconds(first_inside - begin);
  result.tail = to_seconds(end - last_inside);
  result.before = to_seconds(begin - points.front().time);
  result.after = to_seconds(points.back().time - end);
  result.log = to_seconds(points.back().time - points.front().time);
  result.trapezoid = trapezoid(points, begin, end);
  result.bridged = trapezoid(positive, begin, end);
  gaps(points, begin, end, result);
  result.relative_slope = slope(points, begin, end);
  return result;
}

std::optional<Seconds> best_shift(const Readings& readings, Nanoseconds begin, Nanoseconds end,
                                  Nanoseconds reach) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < readings.time.size(); ++i)
    if (usable(readings.watts[i]) && readings.watts[i] > 0 &&
        (points.empty() || readings.time[i] > points.back().time))
      points.push_back({readings.time[i], readings.watts[i]});
  if (points.size() < 4 || end - begin < 2 * reach || reach <= 0) return {};
  // A step needs readings on both sides of each edge, wherever it is tried.
  if (points.front().time > begin - 2 * reach || points.back().time < end + 2 * reach) return {};
  const auto contrast = [&](Nanoseconds shift) {
    const Nanoseconds from = begin + shift, to = end + shift;
    const double within =
        (mean_between(points, from, from + reach) + mean_between(points, to - reach, to)) / 2;
    const double outside =
        (mean_between(points, from - reach, from - 1) + mean_between(points, to + 1, to + reach)) /
        2;
    return within - outside;
  };
  constexpr Nanoseconds kStep = 250'000'000;
  Nanoseconds best = 0;
  double most = contrast(0);
  const double level = mean_between(points, begin, end);
  for (Nanoseconds shift = -reach; shift <= reach; shift += kStep) {
    const double found = contrast(shift);
    if (!(found <= most) && std::abs(found - most) > 0.01 * level) {
      most = found;
      best = shift;
    }
  }
  if (!(most > 0.1 * level)) return {};
  return to_seconds(best);
}

}  // namespace joulediff::meter
