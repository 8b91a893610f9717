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

constexpr std::size_t kMostReadings = 1500;  // more say nothing more; they are thinned out
constexpr std::size_t kFewestReadings = 12;
constexpr Nanoseconds kCoarse = 25'000'000;
constexpr Nanoseconds kFine = 2'500'000;
constexpr double kLeastExplained = 0.5;  // of the readings' variance
constexpr double kExact = 1e-5;          // of the variance: below it the grid decides, not noise
constexpr Nanoseconds kWindows[] = {5,   10,  20,  35,  50,  75,   100,  150,
                                    200, 300, 400, 500, 700, 1000, 1400, 2000};  // ms

Readings readings_near(const run::Series& outside, const Load& load, Nanoseconds reach) {
  Readings all;
  const auto& time = outside.time;
  const auto first = std::ranges::lower_bound(time, load.begin() - reach) - time.begin();
  const auto last = std::ranges::upper_bound(time, load.end() + reach) - time.begin();
  const auto count = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, last - first));
  const std::size_t stride = count / kMostReadings + 1;
  for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); i += stride) {
    all.add(time[i], static_cast<double>(outside.value[i]));
  }
  all.finish();
  return all;
}

void widen(Estimate& estimate, Nanoseconds value, Nanoseconds step) {
  estimate.low = std::min(estimate.low, value - step);
  estimate.high = std::max(estimate.high, value + step);
}

}  // namespace

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

  const double limit =
      error_limit(best, independent(readings, load, best), kExact * readings.squares);
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
