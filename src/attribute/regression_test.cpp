#include "attribute/regression.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace joulediff::attribute {
namespace {

constexpr double kDeviation = 0.25;  // J, of a reading

// Readings over 100 ms in which classes of these watts have random shares of the time.
std::vector<Observation> readings(const std::vector<double>& watts, std::size_t count,
                                  std::uint64_t seed, double deviation = kDeviation) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> share(0, 1);
  std::normal_distribution<double> error(0, deviation);
  std::vector<Observation> all(count);
  for (Observation& one : all) {
    double sum = 0;
    for (std::size_t j = 0; j < watts.size(); ++j) sum += one.amounts.emplace_back(share(random));
    one.value = error(random);
    for (std::size_t j = 0; j < watts.size(); ++j) {
      one.amounts[j] *= 0.1 / sum;
      one.value += watts[j] * one.amounts[j];
    }
    one.deviation = kDeviation;
  }
  return all;
}

TEST(Regression, FindsThePowerOfEachClass) {
  const std::vector<double> watts{500, 120, 0, 330};
  const Fit fit = regress(readings(watts, 60, 1), std::vector<Belief>(4, {250, 250}), 1);
  for (std::size_t j = 0; j < watts.size(); ++j) {
    EXPECT_NEAR(fit.unknowns[j].value, watts[j], fit.unknowns[j].half_width) << j;
    EXPECT_LT(fit.unknowns[j].half_width, 40) << j;
    EXPECT_GE(fit.unknowns[j].value, 0) << j;
  }
}

// Where every reading has the same mixture only the sum is told: the prior stays, with its width.
TEST(Regression, SaysWhereTheReadingsTellNothingApart) {
  const std::vector<Observation> same(100, {25, kDeviation, 0, {0.04, 0.04}});
  const Fit fit = regress(same, std::vector<Belief>(2, {300, 300}), 1);
  for (const Belief& one : fit.unknowns) EXPECT_GT(one.half_width, 150);
  EXPECT_NEAR(0.04 * (fit.unknowns[0].value + fit.unknowns[1].value), 25, 0.1);
}

TEST(Regression, WithoutReadingsIsThePrior) {
  const Fit fit = regress({}, std::vector<Belief>{{300, 20}}, 0);
  EXPECT_EQ(fit.unknowns[0].value, 300);
  EXPECT_EQ(fit.unknowns[0].half_width, 20);
}

// A meter that scatters more than it says makes the answer wider, not wrong; one that scatters less
// makes it narrower.
TEST(Regression, BelievesTheScatter) {
  const std::vector<double> watts{500, 120};
  const std::vector<Belief> prior(2, {250, 250});
  const Fit calm = regress(readings(watts, 60, 3), prior, 1);
  const Fit noisy = regress(readings(watts, 60, 3, 8 * kDeviation), prior, 1);
  const Fit exact = regress(readings(watts, 60, 3, kDeviation / 8), prior, 1);
  EXPECT_NEAR(noisy.scatter[0], 8, 2);
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_GT(noisy.unknowns[j].half_width, 4 * calm.unknowns[j].half_width);
    EXPECT_LT(exact.unknowns[j].half_width, calm.unknowns[j].half_width / 4);
    EXPECT_NEAR(noisy.unknowns[j].value, watts[j], 1.5 * noisy.unknowns[j].half_width);
  }
}

// Of two sources the one that scatters less counts for more, and its gain is found.
TEST(Regression, WeighsSourcesByTheirScatter) {
  const std::vector<double> watts{500, 120, 300};
  std::vector<Observation> all = readings(watts, 60, 5, 10 * kDeviation);
  for (Observation& one : all) one.amounts.push_back(0);
  for (Observation one : readings(watts, 60, 6, kDeviation / 10)) {
    one.value *= 1.03;
    one.source = 1;
    one.amounts.push_back(one.value);
    all.push_back(one);
  }
  std::vector<Belief> prior(3, {300, 300});
  prior.push_back({0, 0.05, true});
  const Fit fit = regress(all, prior, 2);
  EXPECT_GT(fit.scatter[0], 20 * fit.scatter[1]);
  for (std::size_t j = 0; j < 3; ++j)
    EXPECT_NEAR(fit.unknowns[j].value, watts[j], fit.unknowns[j].half_width) << j;
}

// Over many worlds drawn from the prior, 95 % intervals hold the truth about that often.
TEST(Regression, IntervalsHoldTheTruth) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> power(300, 100 / 1.96);
  std::size_t inside = 0, all = 0;
  for (std::uint64_t world = 0; world < 200; ++world) {
    std::vector<double> watts(5);
    for (double& w : watts) w = std::max(0.0, power(random));
    const Fit fit = regress(readings(watts, 30, world), std::vector<Belief>(5, {300, 100}), 1);
    for (std::size_t j = 0; j < watts.size(); ++j, ++all)
      inside += std::abs(fit.unknowns[j].value - watts[j]) <= fit.unknowns[j].half_width;
  }
  const double share = static_cast<double>(inside) / static_cast<double>(all);
  EXPECT_GT(share, 0.93);
  EXPECT_LT(share, 0.975);
}

RC_GTEST_PROP(RegressionProperty, EnergiesAreNeverNegative, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 6);
  const auto watts = *rc::gen::container<std::vector<double>>(
      count, rc::gen::map(rc::gen::inRange(0, 700), [](int w) { return static_cast<double>(w); }));
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Fit fit = regress(readings(watts, 10, seed), std::vector<Belief>(count, {300, 300}), 1);
  for (const Belief& one : fit.unknowns) {
    RC_ASSERT(one.value >= 0);
    RC_ASSERT(std::isfinite(one.half_width) && one.half_width > 0);
    RC_ASSERT(one.half_width <= 300 * 1.0001);
  }
}

}  // namespace
}  // namespace joulediff::attribute
