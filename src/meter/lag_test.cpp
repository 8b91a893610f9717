#include "meter/lag.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr double kFloor = 100;

// Replays of 1.2 s with pauses of 150 ms, seen by a counter that follows with a time constant (ms)
// and ticks every 100 ms, each tick known to within 3 ms.
run::Block replays(const std::vector<double>& watts, double lag, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1);
  run::Block block;
  std::vector<double> load(2500, kFloor);
  block.replays.push_back({run::ReplayKind::static_power, {}, 0, 2400 * kMs, 2400});
  for (std::size_t i = 0; i < watts.size(); ++i) {
    const auto begin = static_cast<Nanoseconds>(load.size()) * kMs;
    load.insert(load.end(), 1200, watts[i]);
    load.insert(load.end(), 150, kFloor);
    block.replays.push_back(
        {run::ReplayKind::op, run::SignatureId(i), begin, begin + 1200 * kMs, 1200});
  }
  run::Series counter{run::Source::nvml_energy, {}, {}, {}};
  double joules = 1000, y = kFloor;
  for (std::size_t ms = 0; ms < load.size(); ++ms) {
    if (lag > 0) y += (load[ms] - y) * (1 - std::exp(-1 / lag));
    joules += 1e-3 * (lag > 0 ? y : load[ms]);
    if (ms % 100 != 37) continue;
    counter.time.push_back(static_cast<Nanoseconds>(ms + 1) * kMs +
                           static_cast<Nanoseconds>(3e6 * unit(random)));
    counter.value.push_back(std::llround(1e3 * joules));
    counter.uncertainty.push_back(3 * kMs);
  }
  block.series.push_back(std::move(counter));
  block.end = static_cast<Nanoseconds>(load.size()) * kMs;
  return block;
}

TEST(Lag, OfACounterThatFollowsLateIsFound) {
  for (const double truth : {120.0, 200.0, 350.0})
    for (unsigned seed = 0; seed < 5; ++seed) {
      const run::Block block = replays({500, 250, 600, 320}, truth, seed);
      EXPECT_NEAR(1e3 * lag({}, block), truth, 0.2 * truth) << seed;
    }
}

TEST(Lag, IsNoneWhereTheCounterFollows) {
  for (const double truth : {0.0, 5.0, 30.0})
    for (unsigned seed = 0; seed < 10; ++seed)
      EXPECT_EQ(lag({}, replays({500, 250, 600, 320}, truth, seed)), 0) << truth << " " << seed;
  EXPECT_EQ(lag({}, run::Block{}), 0);
}

TEST(Lag, IsTakenOffWhatWasRead) {
  Meter meter;
  const run::Block block = replays({500, 250, 600, 320}, 250, 1);
  const auto power = [&](const Meter& with) {
    const run::Replay& third = block.replays[3];
    return read(with, block, third.begin + kSettle, third.end)->power().value;
  };
  EXPECT_LT(power(meter), 0.95 * 600) << "what the lag still held back";
  meter.lag = lag(meter, block);
  EXPECT_NEAR(power(meter), 600, 0.015 * 600);
}

TEST(Lag, ACounterThatForgotIsReadOnOneSideOfIt) {
  run::Block block = replays({500, 500, 500}, 0, 1);
  run::Series& counter = block.series.front();
  // It stands still for 0.5 s of the second replay, and goes on from there.
  const Nanoseconds from = block.replays[2].begin + 300 * kMs;
  std::size_t first = 0;
  while (counter.time[first] < from) ++first;
  const std::int64_t lost = counter.value[first + 5] - counter.value[first];
  counter.time.erase(counter.time.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                     counter.time.begin() + static_cast<std::ptrdiff_t>(first) + 6);
  counter.value.erase(counter.value.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                      counter.value.begin() + static_cast<std::ptrdiff_t>(first) + 6);
  counter.uncertainty.resize(counter.time.size());
  const auto caught_up = read({}, block, block.replays[2].begin, block.replays[2].end);
  ASSERT_TRUE(caught_up);
  EXPECT_FALSE(caught_up->broken);
  EXPECT_NEAR(caught_up->power().value, 500, 5);
  for (std::size_t i = first + 1; i < counter.value.size(); ++i) counter.value[i] -= lost;
  const auto forgot = read({}, block, block.replays[2].begin, block.replays[2].end);
  ASSERT_TRUE(forgot);
  EXPECT_TRUE(forgot->broken);
  EXPECT_NEAR(forgot->power().value, 500, 10);
}

}  // namespace
}  // namespace joulediff::meter
