#include "meter/power_curve.h"

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

// Levels of power of 10 to 80 ms each; the counter ticks every 100 ms and is seen up to 4 ms off,
// the ring reads the mean over each 20 ms, off by its gain.
struct Scene {
  run::Block block;
  std::vector<double> joules;  // the truth, up to each millisecond
};

Scene scene(std::mt19937& random, double gain, bool with_ring) {
  std::uniform_real_distribution<double> watts(80, 600), off(-4, 4);
  std::uniform_int_distribution<int> lasts(10, 80);
  Scene all;
  all.joules = {0};
  while (all.joules.size() < 8001) {
    const double level = watts(random);
    for (int i = lasts(random); i > 0; --i) all.joules.push_back(all.joules.back() + 1e-3 * level);
  }
  run::Series counter{nvml_energy, {}, {}, {}, "board"};
  run::Series ring{nvml_power_samples, {}, {}, {}, "board"};
  for (std::size_t ms = 20; ms < 8000; ms += 20) {
    const auto time = static_cast<Nanoseconds>(ms) * kMs;
    if (ms % 100 == 0) {
      counter.time.push_back(time + std::llround(off(random) * kMs));
      counter.value.push_back(1'000'000 + std::llround(1e3 * all.joules[ms]));
      counter.uncertainty.push_back(4 * kMs);
    }
    ring.time.push_back(time);
    ring.value.push_back(std::llround(1e3 * gain * (all.joules[ms] - all.joules[ms - 20]) / 0.02));
  }
  all.block.end = 8'000 * kMs;
  all.block.series.push_back(std::move(counter));
  if (with_ring) all.block.series.push_back(std::move(ring));
  return all;
}

RC_GTEST_PROP(PowerCurveProperty, IsClosedAgainstTheCounter, ()) {
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  const Scene all = scene(random, 0.01 * *rc::gen::inRange(80, 120), *rc::gen::arbitrary<bool>());
  const PowerCurve curve = power_curve(counter_of("board"), all.block, {});
  RC_ASSERT(curve.closed);
  const run::Series& counter = all.block.series.front();
  const auto i = *rc::gen::inRange<std::size_t>(0, counter.time.size() - 1);
  const auto k = *rc::gen::inRange<std::size_t>(i + 1, counter.time.size());
  const auto energy = curve.energy(counter.time[i], counter.time[k]);
  RC_ASSERT(energy.has_value());
  RC_ASSERT(energy->standing == Standing::measured);
  const double difference = 1e-3 * static_cast<double>(counter.value[k] - counter.value[i]);
  constexpr double kMostWatts = 650, kUncertain = 0.004;
  RC_ASSERT(std::abs(energy->joules.value - difference) < 2 * kMostWatts * kUncertain);
}

RC_GTEST_PROP(PowerCurveProperty, SegmentsFollowOneAnotherAndAddUp, ()) {
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  const Scene all = scene(random, 1.04, *rc::gen::arbitrary<bool>());
  const PowerCurve curve = power_curve(counter_of("board"), all.block, {});
  const auto& segments = curve.segments();
  RC_ASSERT(segments.front().begin == 0 && segments.back().end == all.block.end);
  double joules = 0;
  std::optional<Nanoseconds> from, to;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    RC_ASSERT(segments[i].begin < segments[i].end);
    if (i > 0) RC_ASSERT(segments[i].begin == segments[i - 1].end);
    if (!segments[i].known) continue;
    RC_ASSERT(segments[i].low <= segments[i].watts && segments[i].watts <= segments[i].high);
    joules += (segments[i].watts * segments[i].seconds()).value;
    if (!from) from = segments[i].begin;
    to = segments[i].end;
  }
  const auto energy = curve.energy(*from, *to);
  RC_ASSERT(energy.has_value());
  RC_ASSERT(std::abs(energy->joules.value - joules) < 1e-6 * joules);
}

TEST(PowerCurve, IntervalsHoldTheTruth) {
  std::mt19937 random(11);
  for (const bool with_ring : {true, false}) {
    const Scene all = scene(random, 1.06, with_ring);
    const PowerCurve curve = power_curve(counter_of("board"), all.block, {});
    int held = 0, count = 0;
    double off = 0;
    for (const PowerSegment& one : curve.segments()) {
      if (!one.known || one.seconds().value < 0.005) continue;
      const auto at = [&](Nanoseconds time) {
        const auto ms = static_cast<std::size_t>(time / kMs);
        const double part = static_cast<double>(time % kMs) / kMs;
        return all.joules[ms] + part * (all.joules[ms + 1] - all.joules[ms]);
      };
      const double truth = (at(one.end) - at(one.begin)) / one.seconds().value;
      held += one.low.value <= truth && truth <= one.high.value;
      off += std::abs(one.watts.value - truth);
      ++count;
    }
    EXPECT_GE(held, 0.95 * count) << with_ring;
    EXPECT_LT(off / count, with_ring ? 8 : 20);
  }
}

TEST(PowerCurve, WhatNobodyReadIsUnknown) {
  std::mt19937 random(2);
  Scene all = scene(random, 1, true);
  // The counter ends after 3 s, the ring has a hole from 5 to 6 s.
  run::Series& counter = all.block.series[0];
  counter.time.resize(30);
  counter.value.resize(30);
  counter.uncertainty.resize(30);
  run::Series& ring = all.block.series[1];
  ring.time.erase(ring.time.begin() + 250, ring.time.begin() + 300);
  ring.value.erase(ring.value.begin() + 250, ring.value.begin() + 300);
  const PowerCurve curve = power_curve(counter_of("board"), all.block, {});
  EXPECT_TRUE(curve.energy(500 * kMs, 4900 * kMs));
  EXPECT_EQ(curve.energy(500 * kMs, 4900 * kMs)->standing, Standing::estimated);
  EXPECT_FALSE(curve.energy(4500 * kMs, 5500 * kMs));
  EXPECT_FALSE(curve.energy(5100 * kMs, 5900 * kMs));
  EXPECT_TRUE(curve.energy(6100 * kMs, 7000 * kMs));
  EXPECT_FALSE(curve.energy(-kMs, 500 * kMs));
  EXPECT_FALSE(curve.energy(500 * kMs, 500 * kMs));

  const PowerCurve none = power_curve(counter_of("other"), all.block, {});
  ASSERT_EQ(none.segments().size(), 1u);
  EXPECT_FALSE(none.segments().front().known);
}

TEST(PowerCurve, OfTheOneSecondMeanHasItsMeansAndNothingBetween) {
  Scene all;
  run::Series average{nvml_power_average, {}, {}, {}, "board"};
  for (Nanoseconds ms = 0; ms < 10'000; ms += 100) {  // 1 s at 100 W, 1 s at 500 W
    average.time.push_back(ms * kMs);
    const Nanoseconds inside = ms % 2000;
    average.value.push_back(inside < 1000 ? 500'000 - 400 * inside
                                          : 100'000 + 400 * (inside - 1000));
  }
  all.block.end = 10'000 * kMs;
  all.block.series = {average};
  const PowerCurve curve = power_curve(counter_of("board"), all.block, {});
  EXPECT_FALSE(curve.closed);
  const auto known = std::ranges::find_if(curve.segments(), &PowerSegment::known);
  ASSERT_NE(known, curve.segments().end());
  EXPECT_GE(known->seconds().value, 0.9);
  const auto piece = curve.energy(4500 * kMs, 4600 * kMs);
  ASSERT_TRUE(piece);
  EXPECT_LE(piece->low.value, 15) << "it may have been at rest";
  EXPECT_GE(piece->high.value, 45) << "or busy";
}

TEST(PowerCurve, OfARecordedBoardHasTheCountersJoulesAndTheRingsPeaks) {
  RecordedBoard board = h200_pulses();
  const run::Series counter = series_of(board, nvml_energy);
  board.block.begin = counter.time.front() + 1;  // which is a reading, and no tick
  board.block.end = counter.time.back();
  const PowerCurve curve = power_curve(counter_of("H200"), board.block, {});
  double peak = 0, least = 1e9;
  for (const PowerSegment& one : curve.segments()) {
    if (!one.known) continue;
    peak = std::max(peak, one.watts.value);
    least = std::min(least, one.watts.value);
  }
  EXPECT_GT(peak, 600) << "no tick of 100 ms shows a pulse of 20 ms";
  EXPECT_LT(peak, 1100) << "the instant field showed 924 W";
  EXPECT_GT(least, 20);
  // The longest part without a break of the counter.
  const auto times = ticks(curve.meter, board.block, board.block.begin, board.block.end);
  ASSERT_GT(times.size(), 20u);
  const auto energy = curve.energy(times.front(), times.back());
  const auto reading = read(curve.meter, board.block, times.front(), times.back());
  ASSERT_TRUE(energy && reading);
  EXPECT_NEAR(energy->joules.value, reading->energy.joules.value,
              reading->energy.half_width().value);
  EXPECT_EQ(energy->standing, Standing::measured);
}

// The load of the pulses is known: in each the curve has more power than between them.
TEST(PowerCurve, OfARecordedBoardShowsEachPulse) {
  RecordedBoard board = h200_pulses();
  const run::Series counter = series_of(board, nvml_energy);
  board.block.begin = counter.time.front() + 1;  // which is a reading, and no tick
  board.block.end = counter.time.back();
  const PowerCurve curve = power_curve(counter_of("H200"), board.block, {});
  std::size_t shown = 0, asked = 0;
  for (std::size_t i = 1; i < board.busy.size(); ++i) {
    const auto [begin, end] = board.busy[i];
    const Nanoseconds pause = begin - board.busy[i - 1].second;
    if (end - begin < 15 * kMs || pause < 60 * kMs) continue;
    const auto pulse = curve.energy(begin, end);
    const auto rest = curve.energy(begin - pause / 2 - 10 * kMs, begin - pause / 2 + 10 * kMs);
    if (!pulse || !rest) continue;
    ++asked;
    shown += pulse->joules.value / to_seconds(end - begin).value > rest->joules.value / 0.02 + 100;
  }
  EXPECT_GT(asked, 20u);
  EXPECT_GE(static_cast<double>(shown), 0.95 * static_cast<double>(asked));
}

}  // namespace
}  // namespace joulediff::meter
