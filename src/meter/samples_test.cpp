#include "meter/samples.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kMs = 1'000'000;

// A sensor that has a new value about every 100 ms, polled about every 50 ms.
struct Scene {
  run::Block block;
  std::vector<Nanoseconds> made;

  Scene(double seconds, double jitter_ms, double drift_ms, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(-1, 1), phase(0, 100);
    const double first = phase(random);
    for (int i = 0; 0.1 * i < seconds; ++i)
      made.push_back(std::llround(1e6 * (first + 100.02 * i + jitter_ms * unit(random))));
    run::Series series{run::Source::nvml_power_instant, {}, {}, {}};
    std::size_t seen = 0;
    for (double at = 50; at < 1e3 * seconds; at += 50 + drift_ms * (1 + unit(random))) {
      const auto time = static_cast<Nanoseconds>(1e6 * at);
      while (seen < made.size() && made[seen] <= time) ++seen;
      series.time.push_back(time);
      series.value.push_back(100'000 + static_cast<std::int64_t>(seen));
    }
    block.series.push_back(std::move(series));
    block.end = static_cast<Nanoseconds>(1e9 * seconds);
  }
};

TEST(Samples, OfAPolledFieldAreKnownToAMillisecond) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Scene scene(30, 0.5, 0.15, seed);
    const auto found = power_samples({}, scene.block, 0, scene.block.end);
    ASSERT_EQ(found.size(), 1u) << seed;
    EXPECT_FALSE(found[0].window) << "the field does not say over how long it means";
    ASSERT_GT(found[0].watts.size(), 250u);
    // Of those that are possible one is right.
    bool right = false;
    for (const Stamps& stamps : found[0].stamps) {
      ASSERT_EQ(stamps.end.size(), found[0].watts.size());
      double worst = 0;
      for (std::size_t i = 0; i < stamps.end.size(); ++i) {
        const auto made =
            scene.made[static_cast<std::size_t>(std::llround(found[0].watts[i] * 1e3)) - 100'001];
        const double from_middle = static_cast<double>(stamps.end[i] - scene.block.end / 2);
        const double known =
            static_cast<double>(stamps.half_width) + stamps.drift * std::abs(from_middle);
        worst = std::max(worst, std::abs(static_cast<double>(stamps.end[i] - made)) - known);
      }
      right = right || worst < 1.1e6;
      EXPECT_LT(stamps.half_width, 10 * kMs) << seed;
    }
    EXPECT_TRUE(right) << seed;
  }
}

TEST(Samples, AreLeftOutWhereNobodyKnowsWhenTheyWereMade) {
  // Polls in step with the sensor: its updates may lie anywhere between two of them.
  Scene locked(30, 0, 0, 1);
  for (std::size_t i = 0; i < locked.made.size(); ++i) locked.made[i] = 0;
  run::Series& series = locked.block.series.front();
  for (std::size_t i = 0; i < series.time.size(); ++i) {
    series.time[i] = static_cast<Nanoseconds>(i) * 50 * kMs;
    series.value[i] = static_cast<std::int64_t>(100'000 + i / 2);
  }
  EXPECT_TRUE(power_samples({}, locked.block, 0, locked.block.end).empty());
  const Scene brief(1.5, 0.5, 0.15, 1);
  EXPECT_TRUE(power_samples({}, brief.block, 0, brief.block.end).empty());
}

// A sensor that is faster than the polls (a V100's, 20 ms): each poll finds a new value, which
// tells nothing of when, and must not take for ever.
TEST(Samples, OfASensorFasterThanThePollsAreLeftOut) {
  Scene fast(30, 0, 0.15, 1);
  run::Series& series = fast.block.series.front();
  for (std::size_t i = 0; i < series.time.size(); ++i)
    series.value[i] = static_cast<std::int64_t>(100'000 + i);
  EXPECT_TRUE(power_samples({}, fast.block, 0, fast.block.end).empty());
}

TEST(Samples, OfTheRingAreStampedByTheDriver) {
  run::Block block;
  run::Series ring{run::Source::nvml_power_samples, {}, {}, {}};
  for (int i = 0; i < 500; ++i) {
    ring.time.push_back(20 * kMs * i + (i % 5 == 3 ? 3 * kMs : 0));
    ring.value.push_back(200'000 + i % 7);
  }
  block.series.push_back(ring);
  const auto found = power_samples({}, block, kMs * 1000, kMs * 3000);
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].stamps.size(), 1u);
  EXPECT_EQ(found[0].stamps[0].end.size(), 100u);
  EXPECT_EQ(found[0].stamps[0].half_width, 0);
  EXPECT_NEAR(found[0].window.value_or(0), 0.02, 1e-4);
  Meter other;
  other.channels = {"another board"};
  EXPECT_TRUE(power_samples(other, block, 0, kMs * 9000).empty());
}

}  // namespace
}  // namespace joulediff::meter
