#include "diagnose/ratio.h"

#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace joulediff::diagnose {
namespace {

Measured measured(std::vector<double> blocks, double within = 0) {
  Measured m;
  for (const double x : blocks) m.mean += x / static_cast<double>(blocks.size());
  m.blocks = std::move(blocks);
  m.within = within;
  return m;
}

TEST(Ratio, DifferenceIsOverTheLarger) {
  EXPECT_NEAR(Ratio(measured({100, 100}), measured({25, 25})).difference(0.05).value, -0.75, 1e-12);
  EXPECT_NEAR(Ratio(measured({25, 25}), measured({100, 100})).difference(0.05).value, 0.75, 1e-12);
}

RC_GTEST_PROP(Ratio, SwapTurnsTheSign, ()) {
  const auto block = [] { return 1 + *rc::gen::inRange(0, 1000) / 100.0; };
  const Measured a = measured({block(), block()}, 0.01);
  const Measured b = measured({block(), block()}, 0.02);
  const Difference forth = Ratio(a, b).difference(0.01);
  const Difference back = Ratio(b, a).difference(0.01);
  RC_ASSERT(std::abs(forth.value + back.value) < 1e-12);
  RC_ASSERT(std::abs(forth.low + back.high) < 1e-12);
  RC_ASSERT(std::abs(Ratio(a, b).p_value() - Ratio(b, a).p_value()) < 1e-12);
  RC_ASSERT(forth.low <= forth.value && forth.value <= forth.high);
}

// The claim that intervals make: 95 % of them hold the truth.
TEST(Ratio, IntervalsHoldTheTruth) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.02);
  int inside = 0;
  constexpr int kTrials = 4000;
  for (int i = 0; i < kTrials; ++i) {
    const auto block = [&](double truth) { return truth * (1 + noise(random)); };
    const Difference d =
        Ratio(measured({block(1), block(1)}), measured({block(0.7), block(0.7)})).difference(0.05);
    inside += d.low <= -0.3 && -0.3 <= d.high ? 1 : 0;
  }
  EXPECT_NEAR(inside / double(kTrials), 0.95, 0.012);
}

TEST(Ratio, NoFloorWithoutTwoBlocksOfEachSide) {
  EXPECT_FALSE(Ratio(measured({1}), measured({1, 1})).noise_floor());
  EXPECT_FALSE(Ratio(measured({1, 1}), measured({1})).noise_floor());
  EXPECT_NEAR(*Ratio(measured({1, 0.9}), measured({1, 1})).noise_floor(), 0.1, 1e-12);
}

// Where one side ran once, the other's repeats still say how much processes differ.
TEST(Ratio, ASideThatRanOnceHasTheSpreadOfTheOther) {
  const Ratio ratio(measured({4.06}, 0.001), measured({3, 6.26}, 0.001));
  EXPECT_FALSE(ratio.noise_floor());
  const Difference difference = ratio.difference(0.05);
  EXPECT_LT(difference.low, -0.5);
  EXPECT_GT(difference.high, 0.5);
}

// The ratio is never better known than either side.
RC_GTEST_PROP(Ratio, IsNoBetterKnownThanItsSides, ()) {
  const auto block = [] { return 1 + *rc::gen::inRange(0, 1000) / 100.0; };
  const auto side = [&] {
    auto blocks = *rc::gen::inRange(1, 4);
    std::vector<double> values;
    while (blocks-- > 0) values.push_back(block());
    return measured(values, *rc::gen::inRange(0, 100) / 1000.0);
  };
  const Measured a = side(), b = side();
  const Difference growth = Ratio(a, b).growth(0.05);
  for (const Measured* one : {&a, &b})
    RC_ASSERT(std::log(1 + growth.high) - std::log(1 + growth.value) >=
              1.95 * one->within / one->mean - 1e-12);
  if (a.blocks.size() + b.blocks.size() > 2 && a.blocks != b.blocks)
    for (const Measured* one : {&a, &b})
      if (one->blocks.size() > 1 && one->blocks.front() != one->blocks.back()) {
        RC_ASSERT(growth.high > growth.value);
      }
}

TEST(Ratio, ASideThatDoesNothing) {
  const Ratio ratio(measured({0, 0}), measured({1, 1.01}));
  EXPECT_EQ(ratio.difference(0.05).low, 1);
  EXPECT_EQ(ratio.p_value(), 0);
  EXPECT_EQ(Ratio(measured({0, 0}), measured({0, 0})).difference(0.05).value, 0);
}

// Unknown is not 0: noise around nothing says nothing.
TEST(Ratio, EnergyWithinItsErrorDecidesNothing) {
  const Difference d = Ratio(measured({0, 0}), measured({1, 0.1})).difference(0.05);
  EXPECT_EQ(d.low, -1);
  EXPECT_EQ(d.high, 1);
  EXPECT_EQ(Ratio(measured({-1, -2}), measured({3, 3})).p_value(), 1);
}

TEST(Ratio, BlocksOwnIntervalsAreALowerBoundOfTheError) {
  const Ratio exact(measured({1, 1}), measured({2, 2}));
  const Ratio vague(measured({1, 1}, 0.1), measured({2, 2}, 0.1));
  EXPECT_EQ(exact.difference(0.05).low, exact.difference(0.05).high);
  EXPECT_LT(vague.difference(0.05).low, 0.5);
}

TEST(Ratio, GrowthIsOverA) {
  EXPECT_NEAR(Ratio(measured({100, 100}), measured({150, 150})).growth(0.05).value, 0.5, 1e-12);
}

}  // namespace
}  // namespace joulediff::diagnose
