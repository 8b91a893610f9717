#include "attribute/clock_scaling.h"

#include <cmath>

#include <gtest/gtest.h>

namespace joulediff::attribute {
namespace {

constexpr Nanoseconds kPart = 400'000'000;
constexpr double kFloorWatts = 120, kSeconds = 1e-3;

// Operators whose parts were replayed at these clocks, with dynamic energy that goes with the clock
// to the power of `exponent`.
struct Replays {
  run::Block block;
  Replayed replayed;

  Replays() { block.series.push_back({run::Source::nvml_sm_clock, {}, {}, {}}); }

  void add(std::initializer_list<double> clocks, double joules, double exponent) {
    Execution one{};
    for (const double clock : clocks) {
      const double dynamic = joules * std::pow(clock / 1980, exponent);
      const meter::Reading window{now_, now_ + kPart, {}};
      one.parts.push_back({Joules(dynamic + kFloorWatts * kSeconds), Joules(0.01 * dynamic),
                           Seconds(kSeconds), window});
      for (Nanoseconds t = now_ + kPart / 8; t < window.end; t += kPart / 4) {
        block.series[0].time.push_back(t);
        block.series[0].value.push_back(static_cast<std::int64_t>(clock));
      }
      now_ += kPart;
    }
    replayed.by_signature.emplace_back(one);
  }
  ClockScaling scaling() const { return {block, replayed, Watts(kFloorWatts)}; }

 private:
  Nanoseconds now_ = 0;
};

TEST(ClockScaling, IsWhatPhysicsAllowsWhereNothingMoved) {
  Replays replays;
  replays.add({1980, 1980, 1980, 1980}, 0.4, 1.7);
  const auto factor = replays.scaling().factor(1600, 1980);
  EXPECT_NEAR(factor.value, std::pow(1980. / 1600, 0.75), 1e-9);
  EXPECT_LE(factor.value - factor.half_width, 1.02) << "the voltage need not have moved";
  EXPECT_GE(factor.value + factor.half_width, 0.98 * std::pow(1980. / 1600, 1.5));
}

TEST(ClockScaling, IsReadOffOperatorsWhoseClockMoved) {
  Replays replays;
  replays.add({1980, 1600, 1700, 1900}, 0.4, 1.7);
  replays.add({1650, 1950, 1800, 1980}, 0.02, 1.7);
  replays.add({1980, 1980, 1980, 1980}, 0.1, 1.7);
  const auto factor = replays.scaling().factor(1650, 1950);
  const double truth = std::pow(1950. / 1650, 1.7);
  EXPECT_NEAR(factor.value, truth, factor.half_width);
  EXPECT_LT(factor.half_width, 0.04);
  EXPECT_GT(factor.half_width, 0.001);
}

TEST(ClockScaling, IsNotTrustedBeyondTheClocksThatWereSeen) {
  Replays replays;
  replays.add({1980, 1900, 1940, 1960}, 0.4, 1.7);
  const auto within = replays.scaling().factor(1900, 1980),
             beyond = replays.scaling().factor(1400, 1980);
  EXPECT_LT(within.half_width, 0.05);
  EXPECT_GT(beyond.half_width, 0.75 * std::log(1900. / 1400));
}

TEST(ClockScaling, IsOneAtTheSameClockAndUndoesItself) {
  Replays replays;
  replays.add({1980, 1600, 1700, 1900}, 0.4, 1.2);
  const ClockScaling scaling = replays.scaling();
  EXPECT_EQ(scaling.factor(1700, 1700).value, 1);
  EXPECT_EQ(scaling.factor(1700, 1700).half_width, 0);
  EXPECT_NEAR(scaling.factor(1500, 1900).value * scaling.factor(1900, 1500).value, 1, 1e-12);
}

// Without a clock or with parts that drew no more than the floor there is nothing to learn.
TEST(ClockScaling, TakesNothingForEvidence) {
  Replays replays;
  replays.add({1980, 1600, 1700, 1900}, 0, 1);
  EXPECT_DOUBLE_EQ(replays.scaling().factor(1600, 1980).value, std::pow(1980. / 1600, 0.75));
  replays.block.series.clear();
  EXPECT_DOUBLE_EQ(replays.scaling().factor(1600, 1980).value, std::pow(1980. / 1600, 0.75));
}

}  // namespace
}  // namespace joulediff::attribute
