#include "attribute/conditions.h"

#include <random>

#include <gtest/gtest.h>

namespace joulediff::attribute {
namespace {

constexpr Nanoseconds kWindow = 200'000'000;

std::vector<meter::Reading> readings(std::size_t count, double from, double to, double noise,
                                     unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> error(0, noise);
  std::vector<meter::Reading> all;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<Nanoseconds>(i) * kWindow;
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const double watts = from + (to - from) * part + error(random);
    all.push_back({begin, begin + kWindow,
                   Energy::around(Joules(0.2 * watts), Joules(0.1), Standing::measured)});
  }
  return all;
}

TEST(Drift, IsTheChangeFromBeginToEnd) {
  const auto rising = drift(readings(15, 570, 630, 3)), falling = drift(readings(15, 630, 570, 3));
  ASSERT_TRUE(rising && falling);
  EXPECT_NEAR(*rising, 0.1, 0.02);
  EXPECT_NEAR(*falling, -0.1, 0.02);
}

TEST(Drift, IsNotSeenInFewReadings) {
  EXPECT_FALSE(drift(readings(7, 400, 800, 1)));
  EXPECT_FALSE(drift({}));
}

// A test at 5 % is wrong once in twenty.
TEST(Drift, IsSeldomSeenInNoise) {
  int seen = 0;
  for (unsigned seed = 0; seed < 400; ++seed)
    seen += drift(readings(15, 600, 600, 10, seed)).has_value();
  EXPECT_GT(seen, 8);
  EXPECT_LT(seen, 36);
}

}  // namespace
}  // namespace joulediff::attribute
