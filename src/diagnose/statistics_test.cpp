#include "diagnose/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulediff::diagnose {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(Statistics, QuantilesOfTheTables) {
  EXPECT_NEAR(student_quantile(0.05, 1), 12.706, 1e-3);
  EXPECT_NEAR(student_quantile(0.05, 2), 4.303, 1e-3);
  EXPECT_NEAR(student_quantile(0.01, 10), 3.169, 1e-3);
  EXPECT_NEAR(student_quantile(0.05, kNormal), 1.960, 1e-3);
}

TEST(Statistics, TailUndoesQuantile) {
  for (const double alpha : {0.5, 0.05, 1e-4, 1e-9})
    for (const double freedom : {1.0, 2.0, 6.0, kNormal})
      EXPECT_NEAR(student_tail(student_quantile(alpha, freedom), freedom) / alpha, 1, 1e-6);
}

TEST(Statistics, HolmGivesEachItsTurn) {
  EXPECT_THAT(
      holm_levels({0.01, 0.0001, 0.02}, 0.06),
      ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.02, 1e-12), DoubleNear(0.06, 1e-12)));
}

TEST(Statistics, HolmStopsAtTheFirstFailure) {
  EXPECT_THAT(
      holm_levels({0.04, 0.0001, 0.05}, 0.06),
      ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.02, 1e-12), DoubleNear(0.03, 1e-12)));
}

TEST(Statistics, HolmOfNothing) {
  EXPECT_TRUE(holm_levels({}, 0.05).empty());
}

}  // namespace
}  // namespace joulediff::diagnose
