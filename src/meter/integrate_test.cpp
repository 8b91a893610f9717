#include "meter/integrate.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;

struct Log {
  std::vector<Nanoseconds> time;
  std::vector<double> watts;
  Readings readings() const { return {time, watts}; }
  void add(double seconds, double power) {
    time.push_back(static_cast<Nanoseconds>(seconds * 1e9));
    watts.push_back(power);
  }
};

Log steady(int from, int to, double watts) {
  Log log;
  for (int s = from; s <= to; ++s) log.add(s, watts);
  return log;
}

TEST(Integrate, ConstantPowerIsPowerTimesTime) {
  const auto got = integrate(steady(0, 20, 50).readings(), 5 * kSecond + 1, 15 * kSecond + 1);
  ASSERT_TRUE(got.has_value());
  EXPECT_NEAR(got->trapezoid.value, 500, 1e-6);
  EXPECT_EQ(got->inside, 10U);
  EXPECT_EQ(got->invalid(), 0U);
  EXPECT_EQ(got->mean.value, 50);
  EXPECT_EQ(got->median_gap.value, 1);
  EXPECT_EQ(got->missing, 0U);
}

RC_GTEST_PROP(Integrate, ALineIsExactWhereverTheWindowLies, (std::uint16_t a, std::uint16_t b)) {
  Log log;
  for (int s = 0; s <= 100; ++s) log.add(s, 10 + 2.0 * s);
  const double begin = a % 50, end = begin + 2 + b % 45 + 0.25;
  const auto got = integrate(log.readings(), static_cast<Nanoseconds>(begin * 1e9),
                             static_cast<Nanoseconds>(end * 1e9));
  RC_ASSERT(got.has_value());
  const double wanted = 10 * (end - begin) + (end * end - begin * begin);
  RC_ASSERT(std::abs(got->trapezoid.value - wanted) < 1e-6 * wanted);
}

RC_GTEST_PROP(Integrate, TwoHalvesMakeTheWhole, ()) {
  const auto powers = *rc::gen::container<std::vector<std::uint8_t>>(
      *rc::gen::inRange<std::size_t>(12, 80), rc::gen::arbitrary<std::uint8_t>());
  Log log;
  for (std::size_t i = 0; i < powers.size(); ++i) log.add(static_cast<double>(i), 1.0 + powers[i]);
  const auto last = static_cast<Nanoseconds>(powers.size() - 1) * kSecond;
  const Nanoseconds middle = last / 2 + 123'456'789;
  const auto whole = integrate(log.readings(), 0, last),
             left = integrate(log.readings(), 0, middle),
             right = integrate(log.readings(), middle, last);
  RC_ASSERT(whole && left && right);
  RC_ASSERT(std::abs((left->trapezoid + right->trapezoid - whole->trapezoid).value) < 1e-6);
}

TEST(Integrate, EveryFaultOfAReadingIsCounted) {
  Log log = steady(0, 20, 50);
  log.watts[6] = -50;
  log.watts[7] = 0;
  log.watts[8] = std::numeric_limits<double>::quiet_NaN();
  log.watts[9] = 9.91e37;
  log.time[11] = log.time[10];
  log.time[13] = log.time[3];
  const auto got = integrate(log.readings(), 2 * kSecond, 18 * kSecond);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->nonpositive, 2U);
  EXPECT_EQ(got->not_numbers, 1U);
  EXPECT_EQ(got->overflows, 1U);
  EXPECT_EQ(got->duplicates, 1U);
  EXPECT_EQ(got->backward, 1U);
  EXPECT_NEAR(got->bridged.value, 800, 1e-6);
  EXPECT_LT(got->trapezoid.value, 700);
  EXPECT_EQ(got->mean_positive.value, 50);
}

TEST(Integrate, GapsAndMissingReadings) {
  Log log = steady(0, 5, 50);
  for (int s = 16; s <= 20; ++s) log.add(s, 50);
  const auto got = integrate(log.readings(), 0, 20 * kSecond);
  EXPECT_EQ(got->max_gap.value, 11);
  EXPECT_EQ(got->missing, 10U);
}

TEST(Integrate, WhereTheWindowIsNotCovered) {
  const auto got = integrate(steady(5, 10, 50).readings(), 2 * kSecond, 14 * kSecond);
  EXPECT_EQ(got->head.value, 3);
  EXPECT_EQ(got->tail.value, 4);
  EXPECT_LT(got->before.value, 0);
  EXPECT_FALSE(got->known_before);
}

TEST(Integrate, NothingToIntegrate) {
  EXPECT_FALSE(integrate(Log().readings(), 0, kSecond).has_value());
  EXPECT_FALSE(integrate(steady(0, 9, 50).readings(), 5 * kSecond, 5 * kSecond).has_value());
  EXPECT_FALSE(integrate(steady(0, 9, 50).readings(), 20 * kSecond, 30 * kSecond).has_value());
  EXPECT_FALSE(integrate(steady(0, 9, -1).readings(), 0, 9 * kSecond).has_value());
}

TEST(Integrate, ARisingPowerHasASlope) {
  Log log;
  for (int s = 0; s <= 100; ++s) log.add(s, 100 + 0.1 * s);
  EXPECT_NEAR(integrate(log.readings(), 0, 100 * kSecond)->relative_slope, 5 / 107.5, 1e-3);
}

TEST(BestShift, FindsTheStepOfThePower) {
  Log log;
  for (int s = 0; s <= 200; ++s) log.add(s, s >= 53 && s <= 153 ? 100 : 20);
  const auto shift = best_shift(log.readings(), 50 * kSecond, 150 * kSecond, 5 * kSecond);
  ASSERT_TRUE(shift.has_value());
  EXPECT_NEAR(shift->value, 3, 1);
  EXPECT_NEAR(best_shift(log.readings(), 53 * kSecond, 153 * kSecond, 5 * kSecond)->value, 0, 1);
  EXPECT_FALSE(best_shift(steady(0, 200, 50).readings(), 50 * kSecond, 150 * kSecond, 5 * kSecond))
      << "no step, no shift";
}

}  // namespace
}  // namespace joulediff::meter
