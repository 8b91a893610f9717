// A reading is the mean over a window that ended some time (lag) before it was made, and stands for
// the time up to halfway to its neighbours, or, where windows follow one another closely, for its
// own window. It is off from the mean over that time by
//   what its window did not see: of independent windows that differ by D (root mean square of
//     neighbours' differences), D sqrt(unseen / 2);
//   its time being known to within `blur`: D sqrt(blur / length), since within a window the power
//     varies as it does from kernel to kernel, faster than windows show;
//   noise.
// Where the counter says that they are larger, they are taken to be (power_curve.cpp).
#include "meter/power_shape.h"

#include <algorithm>
#include <cmath>

#include "meter/samples.h"
#include "meter/spread.h"

namespace joulediff::meter {
namespace {

constexpr double kRingLate = 2e-3;   // seconds: the board's capacitors, and the driver's stamps
constexpr double kNoise = 0.003;     // of the power
constexpr std::ptrdiff_t kNear = 4;  // readings to both sides that tell D
constexpr double kHole = 2.5;        // periods without a reading: its neighbours do not tell

// A model that explains less of a sensor's readings is of a load that does not tell (calibrate.h).
constexpr double kExplained = 0.9;

struct Sampled {
  run::Source source = run::Source::nvml_power_instant;
  double window = 0;             // seconds
  std::vector<Nanoseconds> end;  // of the windows
  std::vector<double> watts;
  double blur = 0;  // seconds
};

// Windows of boards that were measured (docs/simulate.md has the sources); 0: the period.
double usual_window(run::Source source) {
  switch (source) {
    case run::Source::nvml_power_instant: return 0.025;
    case run::Source::nvml_power_average: return 1;
    default: return 0;
  }
}

// New values of a field: made somewhere between two polls.
Sampled polled(const run::Series& series) {
  Sampled all;
  all.source = series.source;
  std::vector<double> polls{0};
  for (std::size_t i = 1; i < series.time.size(); ++i) {
    const Nanoseconds poll = series.time[i] - series.time[i - 1];
    polls.push_back(to_seconds(poll).value);
    if (series.value[i] == series.value[i - 1]) continue;
    all.end.push_back(series.time[i] - poll / 2);
    all.watts.push_back(unit(series.source) * static_cast<double>(series.value[i]));
  }
  all.blur = median(polls) / 2;
  return all;
}

run::Block part_of(const run::Series& series, Nanoseconds from, Nanoseconds to) {
  run::Block part;
  part.series = {{series.source, {}, {}, {}, series.channel}};
  for (std::size_t i = 0; i < series.time.size(); ++i)
    if (series.time[i] >= from && series.time[i] <= to) {
      part.series.front().time.push_back(series.time[i]);
      part.series.front().value.push_back(series.value[i]);
    }
  return part;
}

// Where polls are far apart, with the sensor's lattice if that is known (meter/samples.h): it is
// sought in parts, since that takes as long as the square of a part.
Sampled instant(const run::Series& series) {
  constexpr double kFar = 5e-3;  // seconds
  constexpr Nanoseconds kPart = 20'000'000'000, kMargin = 1'000'000'000;
  Sampled own = polled(series);
  if (own.blur < kFar) return own;
  Meter meter;
  meter.channels = {series.channel};
  Sampled all{series.source, 0, {}, {}, kRingLate};
  const Nanoseconds first = series.time.front(), length = series.time.back() - first;
  const Nanoseconds parts = length / kPart + 1;
  for (Nanoseconds i = 0; i < parts; ++i) {
    const Nanoseconds begin = first + i * length / parts - kMargin;
    const Nanoseconds end = first + (i + 1) * length / parts + kMargin;
    const auto found = power_samples(meter, part_of(series, begin, end), begin, end);
    if (found.size() != 1 || found.front().stamps.size() != 1) return own;
    const Stamps& stamps = found.front().stamps.front();
    all.blur = std::max(all.blur, to_seconds(stamps.half_width).value);
    for (std::size_t k = 0; k < stamps.end.size(); ++k) {
      if (!all.end.empty() && stamps.end[k] < all.end.back() + kMargin / 50) continue;
      all.end.push_back(stamps.end[k]);
      all.watts.push_back(found.front().watts[k]);
    }
  }
  return all;
}

Sampled ring(const run::Series& series) {
  Sampled all{series.source, 0, series.time, {}, kRingLate};
  for (const std::int64_t value : series.value)
    all.watts.push_back(unit(series.source) * static_cast<double>(value));
  return all;
}

double period_of(const std::vector<Nanoseconds>& times) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times.size(); ++i)
    gaps.push_back(to_seconds(times[i] - times[i - 1]).value);
  return gaps.empty() ? 0 : median(std::move(gaps));
}

void place(const std::vector<SensorModel>& sensors, Sampled& samples) {
  samples.window = usual_window(samples.source);
  const auto model = std::ranges::find(sensors, samples.source, &SensorModel::source);
  if (model != sensors.end() && model->explained >= kExplained) {
    if (model->window.identified()) samples.window = model->window.value;
    if (model->lag.identified()) {
      for (Nanoseconds& end : samples.end) end -= std::llround(1e9 * model->lag.value);
      samples.blur += (model->lag.high - model->lag.low) / 2;
    }
  }
  if (samples.window == 0) samples.window = period_of(samples.end);
}

// Of readings whose windows overlap by much as many as do not.
void thin(Sampled& samples) {
  if (samples.window < 1.5 * period_of(samples.end)) return;
  Sampled few{samples.source, samples.window, {}, {}, samples.blur};
  for (std::size_t i = 0; i < samples.end.size(); ++i)
    if (few.end.empty() ||
        to_seconds(samples.end[i] - few.end.back()).value >= 0.98 * samples.window) {
      few.end.push_back(samples.end[i]);
      few.watts.push_back(samples.watts[i]);
    }
  samples = std::move(few);
}

// Root mean square of the differences of neighbours, around a reading; its own where larger.
std::vector<double> differences(const std::vector<double>& watts) {
  const auto size = static_cast<std::ptrdiff_t>(watts.size());
  const auto squares = [&](std::ptrdiff_t i, std::ptrdiff_t reach) {
    double sum = 0, count = 0;
    for (std::ptrdiff_t k = std::max<std::ptrdiff_t>(1, i - reach + 1);
         k < std::min(size, i + reach + 1); ++k) {
      const auto at = static_cast<std::size_t>(k);
      sum += std::pow(watts[at] - watts[at - 1], 2);
      count += 1;
    }
    return count > 0 ? sum / count : std::pow(watts[static_cast<std::size_t>(i)], 2);
  };
  std::vector<double> all;
  for (std::ptrdiff_t i = 0; i < size; ++i)
    all.push_back(std::sqrt(std::max(squares(i, 1), squares(i, kNear))));
  return all;
}

std::vector<ShapePiece> pieces(const Sampled& samples) {
  std::vector<ShapePiece> all;
  const double period = period_of(samples.end);
  if (period <= 0) return all;
  const bool whole = samples.window >= 0.8 * period;  // one window follows another
  const auto half = std::llround(1e9 * (whole ? samples.window : period) / 2);
  const auto middle = [&](std::size_t i) {
    return samples.end[i] - std::llround(1e9 * samples.window / 2);
  };
  const auto near = [&](std::size_t i) {
    return to_seconds(samples.end[i] - samples.end[i - 1]).value <= kHole * period;
  };
  const auto bound = [&](std::size_t i) {  // between a reading and the one before
    return whole ? samples.end[i - 1] : middle(i - 1) + (middle(i) - middle(i - 1)) / 2;
  };
  const std::vector<double> apart = differences(samples.watts);
  for (std::size_t i = 0; i < samples.end.size(); ++i) {
    ShapePiece one;
    one.source = samples.source;
    one.watts = samples.watts[i];
    one.begin = i > 0 && near(i) ? bound(i) : middle(i) - half;
    one.end = i + 1 < samples.end.size() && near(i + 1) ? bound(i + 1) : middle(i) + half;
    if (one.end <= one.begin || (!all.empty() && one.begin < all.back().end)) continue;
    const double length = to_seconds(one.end - one.begin).value;
    const double unseen = std::abs(1 - samples.window / length);
    const double blur = std::min(1.0, samples.blur / length);
    const double variance = std::pow(apart[i], 2) * (std::min(1.0, unseen) / 2 + blur) +
                            std::pow(kNoise * one.watts, 2);
    one.rate = variance * length;
    all.push_back(one);
  }
  return all;
}

// What lies in the gaps of the finer ones is added.
void fill(std::vector<ShapePiece>& fine, const std::vector<ShapePiece>& coarse) {
  const std::vector<ShapePiece> had = fine;
  auto next = had.begin();
  for (const ShapePiece& one : coarse) {
    while (next != had.end() && next->end <= one.begin) ++next;
    if (next == had.end() || next->begin >= one.end) fine.push_back(one);
  }
  std::ranges::sort(fine, {}, &ShapePiece::begin);
}

}  // namespace

Shape power_shape(const run::Block& block, const std::string& channel,
                  const std::vector<SensorModel>& sensors) {
  using enum run::Source;
  Shape shape;
  const auto of = [&](run::Source source, auto read) {
    std::vector<ShapePiece> all;
    for (const run::Series& series : block.series) {
      if (series.source != source || series.channel != channel || series.time.size() < 3) continue;
      Sampled samples = read(series);
      place(sensors, samples);
      thin(samples);
      fill(all, pieces(samples));
    }
    return all;
  };
  shape.fine = of(nvml_power_samples, ring);
  fill(shape.fine, of(nvml_power_instant, instant));
  fill(shape.fine, of(amd_power, polled));
  shape.coarse = shape.fine;
  fill(shape.coarse, of(nvml_power_average, polled));
  return shape;
}

}  // namespace joulediff::meter
