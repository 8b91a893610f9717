// Aligning an outside meter.
//
// A reading at stamp t is taken as a + b x (mean of the load over [t - offset - window, t -
// offset]). For every offset and window on a grid, a and b are fitted by least squares; what is
// left is that pair's error. All pairs whose error is not significantly larger than the least one
// form a 95 % region (profile likelihood, with the residuals' autocorrelation taken into account),
// and the intervals are its extent. So nothing has to be known of the load beforehand: without
// edges every offset fits alike, under a periodic load one in every period does, and both show as a
// region that is too wide to be an answer.
#include "meter/alignment.h"

#include <algorithm>
#include <cmath>

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kCell = 5'000'000;
constexpr std::size_t kMostCells = 4'000'000;  // 5.5 hours
constexpr std::size_t kMostReadings = 1500;    // more say nothing more; they are thinned out
constexpr std::size_t kFewestReadings = 12;
constexpr Nanoseconds kCoarse = 25'000'000;
constexpr Nanoseconds kFine = 2'500'000;
constexpr double kLeastExplained = 0.5;  // of the readings' variance
constexpr double kChiSquared = 3.84;     // one parameter, 95 %
constexpr double kExact = 1e-5;          // of the variance: below it the grid decides, not noise
constexpr Nanoseconds kWindows[] = {5,   10,  20,  35,  50,  75,   100,  150,
                                    200, 300, 400, 500, 700, 1000, 1400, 2000};  // ms

struct Readings {
  std::vector<Nanoseconds> time;
  std::vector<double> value;
  double mean = 0, squares = 0;
};

Readings readings_near(const run::Series& outside, const Load& load, Nanoseconds reach) {
  Readings all;
  const auto& time = outside.time;
  const auto first = std::ranges::lower_bound(time, load.begin() - reach) - time.begin();
  const auto last = std::ranges::upper_bound(time, load.end() + reach) - time.begin();
  const auto count = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, last - first));
  const std::size_t stride = count / kMostReadings + 1;
  for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); i += stride) {
    all.time.push_back(time[i]);
    all.value.push_back(static_cast<double>(outside.value[i]));
  }
  for (double value : all.value) all.mean += value / static_cast<double>(all.value.size());
  for (double value : all.value) all.squares += (value - all.mean) * (value - all.mean);
  return all;
}

struct Fit {
  Nanoseconds offset = 0, window = 0;
  double error = 0;  // sum of squares
  double slope = 0, mean = 0;
};

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
  const double variance = squares - sum * sum / n;
  // More load draws more power: a fit that says otherwise is chance.
  if (variance <= 1e-12 * squares || products <= 0) return {offset, window, readings.squares, 0, 0};
  const double slope = products / variance;
  return {offset, window, std::max(0.0, readings.squares - slope * products), slope, sum / n};
}

// How many independent readings the residuals amount to, from their correlation with the next.
double independent(const Readings& readings, const Load& load, const Fit& best) {
  double before = 0, squares = 0, products = 0;
  for (std::size_t i = 0; i < readings.time.size(); ++i) {
    const Nanoseconds end = readings.time[i] - best.offset;
    const double residual = readings.value[i] - readings.mean -
                            best.slope * (load.mean(end - best.window, end) - best.mean);
    squares += residual * residual;
    products += residual * before;
    before = residual;
  }
  const auto n = static_cast<double>(readings.time.size());
  const double correlation = squares > 0 ? std::clamp(products / squares, 0.0, 0.99) : 0;
  return std::max(4.0, n * (1 - correlation) / (1 + correlation) - 4);
}

void widen(Estimate& estimate, Nanoseconds value, Nanoseconds step) {
  estimate.low = std::min(estimate.low, value - step);
  estimate.high = std::max(estimate.high, value + step);
}

}  // namespace

Load Load::busy(std::span<const std::pair<Nanoseconds, Nanoseconds>> intervals) {
  Load load;
  if (intervals.empty()) return load;
  load.begin_ = intervals.front().first - kCell;  // idle before
  for (const auto& [from, to] : intervals) load.add(from, to, 1);
  load.cells_.resize(std::min(kMostCells, load.cells_.size() + 1));  // and after
  load.finish();
  return load;
}

Load Load::drawn(const std::vector<run::Series>& all, run::Source source) {
  Load load;
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
    const auto cell = static_cast<std::size_t>((from - begin_) / kCell);
    if (cell >= kMostCells) return;
    if (cell >= cells_.size()) cells_.resize(cell + 1);
    const Nanoseconds until = std::min(to, begin_ + kCell * static_cast<Nanoseconds>(cell + 1));
    cells_[cell] += value * static_cast<double>(until - from) / static_cast<double>(kCell);
    from = until;
  }
}

void Load::finish() {
  integral_.resize(cells_.size() + 1);
  for (std::size_t i = 0; i < cells_.size(); ++i) integral_[i + 1] = integral_[i] + cells_[i];
}

Nanoseconds Load::end() const {
  return begin_ + kCell * static_cast<Nanoseconds>(cells_.size());
}

double Load::integral(Nanoseconds time) const {
  const double at = static_cast<double>(time - begin_) / static_cast<double>(kCell);
  if (at <= 0) return at * cells_.front();
  const auto cell = static_cast<std::size_t>(at);
  if (cell >= cells_.size())
    return integral_.back() + (at - static_cast<double>(cells_.size())) * cells_.back();
  return integral_[cell] + (at - static_cast<double>(cell)) * cells_[cell];
}

double Load::mean(Nanoseconds from, Nanoseconds to) const {
  return (integral(to) - integral(from)) * static_cast<double>(kCell) /
         static_cast<double>(to - from);
}

std::optional<Alignment> align(const run::Series& outside, const Load& load, Nanoseconds reach) {
  if (load.empty()) return std::nullopt;
  const Readings readings = readings_near(outside, load, reach);
  if (readings.time.size() < kFewestReadings || readings.squares <= 0) return std::nullopt;

  std::vector<Fit> fits;
  for (Nanoseconds window : kWindows)
    for (Nanoseconds offset = -reach; offset <= reach; offset += kCoarse)
      fits.push_back(fit(readings, load, offset, window * 1'000'000));
  const Fit coarse = *std::ranges::min_element(fits, {}, &Fit::error);
  for (int part = -8; part <= 8; ++part) {
    const auto window = static_cast<Nanoseconds>(static_cast<double>(coarse.window) *
                                                 std::exp2(static_cast<double>(part) / 16));
    for (Nanoseconds step = -2 * kCoarse; step <= 2 * kCoarse; step += kFine)
      fits.push_back(
          fit(readings, load, coarse.offset + step - (window - coarse.window) / 2, window));
  }
  const Fit best = *std::ranges::min_element(fits, {}, &Fit::error);
  if (best.error > (1 - kLeastExplained) * readings.squares) return std::nullopt;

  const double limit = std::max(best.error, kExact * readings.squares) *
                       std::exp(kChiSquared / independent(readings, load, best));
  const auto centre = [](const Fit& fit) { return fit.offset + fit.window / 2; };
  Alignment found{{best.offset, best.offset, best.offset},
                  {best.window, best.window, best.window},
                  {centre(best), centre(best), centre(best)}};
  for (const Fit& each : fits) {
    if (each.error > limit) continue;
    widen(found.offset, each.offset, kFine);
    widen(found.window, each.window, kFine);
    widen(found.delay, centre(each), kFine);
  }
  const bool at_the_edge = found.offset.low <= -reach || found.offset.high >= reach;
  if (at_the_edge || found.delay.high - found.delay.low > reach / 4) return std::nullopt;
  return found;
}

}  // namespace joulediff::meter
