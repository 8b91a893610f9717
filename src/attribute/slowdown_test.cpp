#include "attribute/slowdown.h"

#include <cmath>

#include <gtest/gtest.h>

namespace joulediff::attribute {
namespace {

using Timings = std::vector<std::optional<Timing>>;

Timing timing(double seconds, double slower, double gap, double kernels = 1) {
  return {seconds * (1 + slower), seconds + gap, kernels};
}

TEST(Slowdown, AGapIsNoSpeed) {
  // A kernel of 20 us with gaps of 2 us seems to be 10 % quicker in the program, and is not.
  const auto found = slowdowns(Timings{timing(20e-6, 0, 2e-6), timing(500e-6, 0, 2e-6)});
  for (const auto& one : found) {
    ASSERT_TRUE(one);
    EXPECT_NEAR(one->relative, 0, one->half_width + 1e-9);
  }
  EXPECT_LT(found[1]->relative, 0.002);
}

TEST(Slowdown, IsFoundBeneathGapsOfAnyLength) {
  for (const double gap : {1e-6, 2e-6, 5e-6}) {
    const auto found = slowdowns(
        Timings{timing(15e-6, 0.01, gap), timing(200e-6, 0.03, gap), timing(900e-6, 0.06, gap)});
    EXPECT_NEAR(found[1]->relative, 0.03, found[1]->half_width) << gap;
    EXPECT_NEAR(found[2]->relative, 0.06, found[2]->half_width) << gap;
    EXPECT_LT(found[2]->half_width, 0.01);
  }
}

TEST(Slowdown, OfShortKernelsAndOfSeveralItSaysHowLittleItKnows) {
  const auto found = slowdowns(Timings{timing(10e-6, 0.03, 2e-6), timing(100e-6, 0.03, 2e-6, 3),
                                       timing(100e-6, 0.03, 2e-6)});
  EXPECT_GT(found[0]->half_width, 0.015);
  EXPECT_GT(found[1]->half_width, found[2]->half_width);
  for (const auto& one : found) EXPECT_NEAR(one->relative, 0.03, one->half_width);
}

TEST(Slowdown, IsUnknownWhereNothingWasTimed) {
  const auto found = slowdowns(Timings{std::nullopt, Timing{0, 1e-3, 1}, Timing{1e-4, 5e-7, 1}});
  for (const auto& one : found) EXPECT_FALSE(one);
}

}  // namespace
}  // namespace joulediff::attribute
