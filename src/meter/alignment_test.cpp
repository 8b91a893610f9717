#include "meter/alignment.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kS = 1'000'000'000;

// Bursts of work of 0.3 to 2.3 s with pauses of as much, for a minute.
Intervals bursts(unsigned seed) {
  std::mt19937 random(seed);
  Intervals busy;
  for (Nanoseconds t = kS; t < 60 * kS;) {
    const auto length = static_cast<Nanoseconds>(300 + random() % 2000) * kMs;
    busy.emplace_back(t, t + length);
    t += length + static_cast<Nanoseconds>(300 + random() % 2000) * kMs;
  }
  return busy;
}

struct SimulatedMeter {
  Nanoseconds period = 100 * kMs;
  Nanoseconds offset = 0;  // of its stamps after the window's end
  Nanoseconds window = 50 * kMs;
  double noise = 3000;  // mW
};

// 80 W idle, 400 W busy, as the meter shows it. The truth is summed up from the intervals here, not
// by the code under test.
run::Series readings(const SimulatedMeter& meter, const Intervals& busy, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, meter.noise);
  run::Series series;
  series.source = run::Source::nvml_power_instant;
  for (Nanoseconds end = 0; end < 62 * kS; end += meter.period) {
    const Nanoseconds begin = end - meter.window;
    Nanoseconds inside = 0;
    for (const auto& [from, to] : busy)
      inside += std::max<Nanoseconds>(0, std::min(to, end) - std::max(from, begin));
    const double share = static_cast<double>(inside) / static_cast<double>(meter.window);
    series.time.push_back(end + meter.offset);
    series.value.push_back(std::llround(std::max(0.0, 80'000 + 320'000 * share + noise(random))));
  }
  return series;
}

bool holds(const Estimate& estimate, Nanoseconds truth) {
  return estimate.low <= truth && truth <= estimate.high && estimate.low <= estimate.value &&
         estimate.value <= estimate.high;
}

TEST(Align, FindsOffsetAndWindowOfASimulatedMeter) {
  const SimulatedMeter meters[] = {{100 * kMs, 730 * kMs, 50 * kMs},
                                   {100 * kMs, -2210 * kMs, 1000 * kMs},
                                   {kS, 340 * kMs, 1000 * kMs},
                                   {10 * kMs, 0, 25 * kMs, 20'000},
                                   {250 * kMs, 4 * kS, 250 * kMs}};
  for (const SimulatedMeter& meter : meters) {
    const Intervals busy = bursts(7);
    const auto found = align(readings(meter, busy, 3), Load::busy(busy));
    ASSERT_TRUE(found) << meter.offset;
    EXPECT_TRUE(holds(found->offset, meter.offset))
        << meter.offset << ": " << found->offset.low << " to " << found->offset.high;
    EXPECT_TRUE(holds(found->window, meter.window))
        << meter.window << ": " << found->window.low << " to " << found->window.high;
    EXPECT_TRUE(holds(found->delay, meter.offset + meter.window / 2)) << meter.offset;
    EXPECT_LE(found->delay.high - found->delay.low, 100 * kMs) << meter.offset;
  }
}

TEST(Align, ItsIntervalHoldsTheTruthNineteenTimesOutOfTwenty) {
  int held = 0;
  constexpr int kTrials = 20;
  for (unsigned seed = 1; seed <= kTrials; ++seed) {
    const SimulatedMeter meter{200 * kMs, 10 * kMs * (seed * 37 % 100), 300 * kMs, 30'000};
    const Intervals busy = bursts(seed);
    const auto found = align(readings(meter, busy, seed + 100), Load::busy(busy), 2 * kS);
    ASSERT_TRUE(found) << seed;
    held += holds(found->delay, meter.offset + meter.window / 2);
  }
  EXPECT_GE(held, kTrials - 2);
}

TEST(Align, AgainstABoardsPower) {
  const Intervals busy = bursts(11);
  const run::Series board = readings({20 * kMs, 0, 20 * kMs, 2000}, busy, 5);
  const auto found =
      align(readings({kS / 2, 900 * kMs, 400 * kMs}, busy, 6), Load::drawn({board}, board.source));
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(found->delay.value), 1100e6, 30e6);
}

TEST(Align, AgainstACountersRate) {
  const Intervals busy = bursts(13);
  run::Series load{run::Source::host_load, {}, {}, {}};  // two cores' time, 20 ms apart
  for (Nanoseconds t = 0; t < 62 * kS; t += 20 * kMs) {
    Nanoseconds used = 0;
    for (const auto& [from, to] : busy) used += std::clamp<Nanoseconds>(t - from, 0, to - from);
    load.time.push_back(t);
    load.value.push_back(2 * used);
  }
  const auto found =
      align(readings({kS / 2, 900 * kMs, 400 * kMs}, busy, 6), Load::drawn({load}, load.source));
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(found->delay.value), 1100e6, 30e6);
}

TEST(Align, BoardsOfOneHostAreOneLoad) {
  const Intervals one = bursts(3), other = bursts(4);
  const std::vector<run::Series> boards{readings({20 * kMs, 0, 20 * kMs, 2000}, one, 5),
                                        readings({20 * kMs, 0, 20 * kMs, 2000}, other, 6)};
  run::Series wall = readings({kS / 2, 900 * kMs, 400 * kMs}, one, 7);
  const run::Series rest = readings({kS / 2, 900 * kMs, 400 * kMs}, other, 8);
  for (std::size_t i = 0; i < wall.value.size(); ++i) wall.value[i] += rest.value[i];
  const auto found = align(wall, Load::drawn(boards, boards.front().source));
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(found->delay.value), 1100e6, 30e6);
}

TEST(Align, ALoadWithoutEdgesTellsNothing) {
  const Intervals always{{-20 * kS, 90 * kS}};
  EXPECT_FALSE(align(readings({}, always, 1), Load::busy(always)));
}

TEST(Align, APeriodicLoadTellsNothing) {
  Intervals busy;
  for (Nanoseconds t = -10 * kS; t < 75 * kS; t += kS) busy.emplace_back(t, t + kS / 2);
  EXPECT_FALSE(align(readings({}, busy, 1), Load::busy(busy)));
}

TEST(Align, AMeterOfSomethingElseTellsNothing) {
  EXPECT_FALSE(align(readings({}, bursts(21), 1), Load::busy(bursts(22))));
}

TEST(Align, NothingComesOfNothing) {
  const Intervals busy = bursts(7);
  EXPECT_FALSE(align(run::Series{}, Load::busy(busy)));
  EXPECT_FALSE(align(readings({}, busy, 1), Load::busy({})));
  run::Series still = readings({}, busy, 1);
  std::ranges::fill(still.value, 100'000);
  EXPECT_FALSE(align(still, Load::busy(busy)));
}

}  // namespace
}  // namespace joulediff::meter
