#include "meter/load.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/chi_squared.hpp>

namespace joulediff::meter {
namespace {

constexpr std::size_t kMostCells = 4'000'000;

}  // namespace

Load Load::busy(std::span<const std::pair<Nanoseconds, Nanoseconds>> intervals, Nanoseconds cell) {
  Load load(cell);
  if (intervals.empty()) return load;
  load.begin_ = intervals.front().first - cell;  // idle before
  for (const auto& [from, to] : intervals) load.add(from, to, 1);
  load.cells_.resize(std::min(kMostCells, load.cells_.size() + 1));  // and after
  load.finish();
  return load;
}

Load Load::drawn(const std::vector<run::Series>& all, run::Source source, Nanoseconds cell) {
  Load load(cell);
  bool any = false;
  for (const run::Series& series : all) {
    if (series.source != source || series.time.size() < 2) continue;
    load.begin_ = any ? std::min(load.begin_, series.time.front()) : series.time.front();
    any = true;
  }
  const bool counts = run::is_energy_counter(source) || source == run::Source::host_cpu ||
                      source == run::Source::host_load;
  for (const run::Series& series : all) {
    if (series.source != source) continue;
    for (std::size_t i = 1; i < series.time.size(); ++i) {
      const auto since = static_cast<double>(series.time[i] - series.time[i - 1]);
      const auto value =
          static_cast<double>(counts ? series.value[i] - series.value[i - 1] : series.value[i]);
      if (value >= 0) load.add(series.time[i - 1], series.time[i], counts ? value / since : value);
    }
  }
  load.finish();
  return load;
}

void Load::add(Nanoseconds from, Nanoseconds to, double value) {
  while (from < to) {
    const auto cell = static_cast<std::size_t>((from - begin_) / cell_);
    if (cell >= kMostCells) return;
    if (cell >= cells_.size()) cells_.resize(cell + 1);
    const Nanoseconds until = std::min(to, begin_ + cell_ * static_cast<Nanoseconds>(cell + 1));
    cells_[cell] += value * static_cast<double>(until - from) / static_cast<double>(cell_);
    from = until;
  }
}

void Load::finish() {
  integral_.resize(cells_.size() + 1);
  for (std::size_t i = 0; i < cells_.size(); ++i) integral_[i + 1] = integral_[i] + cells_[i];
}

Nanoseconds Load::end() const {
  return begin_ + cell_ * static_cast<Nanoseconds>(cells_.size());
}

double Load::integral(Nanoseconds time) const {
  const double at = static_cast<double>(time - begin_) / static_cast<double>(cell_);
  if (at <= 0) return at * cells_.front();
  const auto cell = static_cast<std::size_t>(at);
  if (cell >= cells_.size())
    return integral_.back() + (at - static_cast<double>(cells_.size())) * cells_.back();
  return integral_[cell] + (at - static_cast<double>(cell)) * cells_[cell];
}

double Load::mean(Nanoseconds from, Nanoseconds to) const {
  return (integral(to) - integral(from)) * static_cast<double>(cell_) /
         static_cast<double>(to - from);
}

void Readings::add(Nanoseconds at, double reading) {
  time.push_back(at);
  value.push_back(reading);
}

void Readings::finish() {
  mean = squares = 0;
  for (double each : value) mean += each / static_cast<double>(value.size());
  for (double each : value) squares += (each - mean) * (each - mean);
}

Fit fit(const Readings& readings, const Load& load, Nanoseconds offset, Nanoseconds window) {
  double sum = 0, squares = 0, products = 0;
  for (std::size_t i = 0; i < readings.time.size(); ++i) {
    const Nanoseconds end = readings.time[i] - offset;
    const double x = load.mean(end - window, end);
    sum += x;
    squares += x * x;
    products += x * (readings.value[i] - readings.mean);
  }
  const auto n = static_cast<double>(readings.time.size());
  const double spread = squares - sum * sum / n;
  // More load draws more power: a fit that says otherwise is chance.
  if (spread <= 1e-12 * squares || products <= 0)
    return {offset, window, readings.squares, 0, readings.mean, spread};
  const double slope = products / spread;
  return {offset,
          window,
          std::max(0.0, readings.squares - slope * products),
          slope,
          readings.mean - slope * sum / n,
          spread};
}

double independent(const Readings& readings, const Load& load, const Fit& best) {
  double before = 0, squares = 0, products = 0;
  for (std::size_t i = 0; i < readings.time.size(); ++i) {
    const Nanoseconds end = readings.time[i] - best.offset;
    const double residual =
        readings.value[i] - best.intercept - best.slope * load.mean(end - best.window, end);
    squares += residual * residual;
    products += residual * before;
    before = residual;
  }
  const auto n = static_cast<double>(readings.time.size());
  const double correlation = squares > 0 ? std::clamp(products / squares, 0.0, 0.99) : 0;
  return std::max(4.0, n * (1 - correlation) / (1 + correlation) - 4);
}

double error_limit(const Fit& best, double independent_readings, double exact) {
  const double chi_squared = boost::math::quantile(boost::math::chi_squared(1), 0.95);
  return std::max(best.error, exact) * std::exp(chi_squared / independent_readings);
}

}  // namespace joulediff::meter
