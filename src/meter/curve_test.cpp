#include "meter/curve.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "meter/test_recorded.h"

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
using enum run::Source;

Meter counter_of(const std::string& channel) {
  Meter meter;
  meter.channels = {channel};
  return meter;
}

// Levels of power of 10 to 80 ms each; the counter ticks every 100 ms, the ring every 20 ms reads
// the mean since its last sample, off by its gain.
struct Scene {
  run::Block block;
  std::vector<double> joules;  // the truth, up to each millisecond
};

Scene scene(std::mt19937& random, double gain, bool with_ring) {
  std::uniform_real_distribution<double> watts(80, 600);
  std::uniform_int_distribution<int> lasts(10, 80);
  Scene all;
  all.joules = {0};
  while (all.joules.size() < 8001) {
    const double level = watts(random);
    for (int i = lasts(random); i > 0; --i) all.joules.push_back(all.joules.back() + 1e-3 * level);
  }
  run::Series counter{nvml_energy, {}, {}, {}, "board"},
      ring{nvml_power_samples, {}, {}, {}, "board"};
  for (std::size_t ms = 0; ms <= 8000; ms += 20) {
    if (ms % 100 == 0) {
      counter.time.push_back(static_cast<Nanoseconds>(ms) * kMs);
      counter.value.push_back(1'000'000 + std::llround(1e3 * all.joules[ms]));
      counter.uncertainty.push_back(0);
    }
    ring.time.push_back(static_cast<Nanoseconds>(ms) * kMs);
    const double mean = ms == 0 ? 100 : (all.joules[ms] - all.joules[ms - 20]) / 0.02;
    ring.value.push_back(std::llround(1e3 * gain * mean));
  }
  all.block.end = 8'000 * kMs;
  all.block.series.push_back(std::move(counter));
  if (with_ring) all.block.series.push_back(std::move(ring));
  return all;
}

RC_GTEST_PROP(CurveProperty, IsClosedAgainstTheCounter, ()) {
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  const Scene all = scene(random, 0.01 * *rc::gen::inRange(80, 120), *rc::gen::arbitrary<bool>());
  const auto curve = power_curve(counter_of("board"), all.block, 0, all.block.end);
  RC_ASSERT(curve.has_value());
  const auto& ticks = curve->ticks();
  const auto i = *rc::gen::inRange<std::size_t>(0, ticks.size() - 1);
  const auto k = *rc::gen::inRange<std::size_t>(i + 1, ticks.size());
  const auto energy = curve->energy(ticks[i], ticks[k]);
  RC_ASSERT(energy.has_value());
  const auto ms = [&](std::size_t at) { return static_cast<std::size_t>(ticks[at] / kMs); };
  RC_ASSERT(std::abs(energy->joules.value - (all.joules[ms(k)] - all.joules[ms(i)])) < 2e-3);
  RC_ASSERT(energy->standing == Standing::measured);
}

TEST(Curve, IntervalsHoldTheEnergyOfAnyWindow) {
  std::mt19937 random(11);
  for (const bool with_ring : {true, false}) {
    const Scene all = scene(random, 1.06, with_ring);
    const auto curve = power_curve(counter_of("board"), all.block, 0, all.block.end);
    ASSERT_TRUE(curve);
    std::uniform_int_distribution<std::size_t> begin(100, 7000), length(15, 700);
    int holds = 0, times = 400;
    double off = 0;
    for (int i = 0; i < times; ++i) {
      const std::size_t from = begin(random), to = from + length(random);
      const auto energy =
          curve->energy(static_cast<Nanoseconds>(from) * kMs, static_cast<Nanoseconds>(to) * kMs);
      ASSERT_TRUE(energy);
      const double truth = all.joules[to] - all.joules[from];
      holds += energy->low.value <= truth && truth <= energy->high.value;
      off = std::max(off, std::abs(energy->joules.value - truth));
    }
    EXPECT_GE(holds, 0.95 * times) << with_ring;
    // Without a shape 100 ms of 80 to 600 W are open at both ends; with one 20 ms are.
    EXPECT_LT(off, with_ring ? 8 : 30);
  }
}

TEST(Curve, IsNoneWhereTheCounterDoesNotTell) {
  std::mt19937 random(2);
  Scene all = scene(random, 1, true);
  EXPECT_FALSE(power_curve(counter_of("other"), all.block, 0, all.block.end));
  EXPECT_FALSE(power_curve(counter_of("board"), all.block, 0, 150 * kMs)) << "two ticks";
  Meter both = counter_of("board");
  both.channels.push_back("other");
  EXPECT_FALSE(power_curve(both, all.block, 0, all.block.end));
  const auto curve = power_curve(counter_of("board"), all.block, 0, all.block.end);
  ASSERT_TRUE(curve);
  EXPECT_FALSE(curve->energy(-kMs, 500 * kMs));
  EXPECT_FALSE(curve->energy(500 * kMs, 9000 * kMs));
  EXPECT_FALSE(curve->energy(500 * kMs, 500 * kMs));
}

TEST(Curve, OfARecordedBoardHasTheCountersJoulesAndTheRingsPeaks) {
  RecordedBoard board = h200_pulses();
  const run::Series counter = series_of(board, nvml_energy);
  const auto curve =
      power_curve(counter_of("H200"), board.block, counter.time.front(), counter.time.back());
  ASSERT_TRUE(curve);
  double joules = 0, peak = 0;
  for (const PowerCurve::Cell& cell : curve->cells()) {
    joules += cell.watts * to_seconds(cell.end - cell.begin).value;
    peak = std::max(peak, cell.watts);
    ASSERT_GE(cell.half_width, 0);
    ASSERT_GE(cell.watts, 0);
  }
  const auto whole = curve->energy(curve->ticks().front(), curve->ticks().back());
  ASSERT_TRUE(whole);
  EXPECT_NEAR(whole->joules.value, joules, 1e-6 * joules);
  const auto at = [&](Nanoseconds time) {
    const auto found = std::ranges::lower_bound(counter.time, time);
    return counter.value[static_cast<std::size_t>(found - counter.time.begin())];
  };
  EXPECT_NEAR(joules,
              1e-3 * static_cast<double>(at(curve->ticks().back()) - at(curve->ticks().front())),
              1e-6 * joules);
  EXPECT_GT(peak, 600) << "no tick of 100 ms shows a pulse of 20 ms";
}

}  // namespace
}  // namespace joulediff::meter
