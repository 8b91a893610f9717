#include "attribute/regression.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace joulediff::attribute {
namespace {

constexpr double kHalfWidth = 0.5;  // J, of a window

// Windows of 100 ms in which classes of these watts have random shares of the time.
std::vector<PowerWindow> windows(const std::vector<double>& watts, std::size_t count,
                                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> share(0, 1);
  std::normal_distribution<double> error(0, kHalfWidth / 1.96);
  std::vector<PowerWindow> all(count);
  for (PowerWindow& window : all) {
    double sum = 0;
    for (std::size_t j = 0; j < watts.size(); ++j)
      sum += window.seconds.emplace_back(share(random));
    window.joules = error(random);
    for (std::size_t j = 0; j < watts.size(); ++j) {
      window.seconds[j] *= 0.1 / sum;
      window.joules += watts[j] * window.seconds[j];
    }
    window.half_width = kHalfWidth;
  }
  return all;
}

TEST(Regression, FindsThePowerOfEachClass) {
  const std::vector<double> watts{500, 120, 0, 330};
  const auto found = regress(windows(watts, 60, 1), std::vector<ClassPower>(4, {250, 250, false}));
  for (std::size_t j = 0; j < watts.size(); ++j) {
    EXPECT_TRUE(found[j].told) << j;
    EXPECT_NEAR(found[j].watts, watts[j], found[j].half_width) << j;
    EXPECT_LT(found[j].half_width, 40) << j;
    EXPECT_GE(found[j].watts, 0) << j;
  }
}

// Where every window has the same mixture only the sum is told: the prior stays, with its width.
TEST(Regression, SaysWhereTheWindowsTellNothingApart) {
  std::vector<PowerWindow> same(100, {25, kHalfWidth, {0.04, 0.04}});
  const std::vector<ClassPower> prior{{300, 300, false}, {300, 300, false}};
  const auto found = regress(same, prior);
  for (const ClassPower& power : found) {
    EXPECT_FALSE(power.told);
    EXPECT_GT(power.half_width, 150);
  }
  EXPECT_NEAR(0.04 * (found[0].watts + found[1].watts), 25, 0.1);
}

TEST(Regression, WithoutWindowsIsThePrior) {
  const auto found = regress({}, std::vector<ClassPower>{{300, 20, true}});
  EXPECT_EQ(found[0].watts, 300);
  EXPECT_EQ(found[0].half_width, 20);
  EXPECT_FALSE(found[0].told);
}

// A meter that scatters more than it says makes the answer wider, not wrong.
TEST(Regression, BelievesTheScatter) {
  const std::vector<double> watts{500, 120};
  auto noisy = windows(watts, 60, 3);
  std::mt19937_64 random(7);
  std::normal_distribution<double> error(0, 3);
  for (PowerWindow& window : noisy) window.joules += error(random);
  const std::vector<ClassPower> prior(2, {250, 250, false});
  const auto found = regress(noisy, prior), calm = regress(windows(watts, 60, 3), prior);
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_GT(found[j].half_width, 3 * calm[j].half_width);
    EXPECT_NEAR(found[j].watts, watts[j], 1.5 * found[j].half_width);
  }
}

// Over many worlds drawn from the prior, 95 % intervals hold the truth about that often.
TEST(Regression, IntervalsHoldTheTruth) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> power(300, 100 / 1.96);
  std::size_t inside = 0, all = 0;
  for (std::uint64_t world = 0; world < 200; ++world) {
    std::vector<double> watts(5);
    for (double& w : watts) w = std::max(0.0, power(random));
    const auto found =
        regress(windows(watts, 30, world), std::vector<ClassPower>(5, {300, 100, false}));
    for (std::size_t j = 0; j < watts.size(); ++j, ++all)
      inside += std::abs(found[j].watts - watts[j]) <= found[j].half_width;
  }
  const double share = static_cast<double>(inside) / static_cast<double>(all);
  EXPECT_GT(share, 0.93);
  EXPECT_LT(share, 0.975);
}

RC_GTEST_PROP(RegressionProperty, WattsAreNeverNegative, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 6);
  const auto watts = *rc::gen::container<std::vector<double>>(
      count, rc::gen::map(rc::gen::inRange(0, 700), [](int w) { return static_cast<double>(w); }));
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto found =
      regress(windows(watts, 10, seed), std::vector<ClassPower>(count, {300, 300, false}));
  for (const ClassPower& power : found) {
    RC_ASSERT(power.watts >= 0);
    RC_ASSERT(std::isfinite(power.half_width) && power.half_width > 0);
    RC_ASSERT(power.half_width <= 300 * 1.0001);
  }
}

}  // namespace
}  // namespace joulediff::attribute
