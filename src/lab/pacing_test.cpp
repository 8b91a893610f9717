#include "lab/pacing.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

constexpr double kBoost = 1980;

// A board whose clock falls where the mean power would be above its limit.
struct Board {
  double watts = 900, floor = 120, limit = 700;
  Conditions at(double duty) const {
    const double asked = floor + (watts - floor) * duty;
    const double clock = asked <= limit ? kBoost : kBoost * std::max(0.4, limit / asked);
    return {clock, asked > limit ? 1. : 0., std::min(asked, limit)};
  }
};

TEST(Pacing, LeavesAReplayThatRunsAtTheProgramsClock) {
  const Conditions program{kBoost, 0, 450};
  EXPECT_FALSE(Pacing(program, 10 * kMillisecond).next({kBoost, 0, 690}));
  EXPECT_FALSE(Pacing(program, 10 * kMillisecond).next({0.99 * kBoost, 0, 690}));
}

TEST(Pacing, ComesToTheProgramsClockWithFewTries) {
  const Board board;
  const Conditions program{kBoost, 0, 300};
  Pacing pacing(program, 85 * kMillisecond);
  Conditions replay = board.at(1);
  ASSERT_LT(*replay.megahertz, 1600);
  int tries = 0;
  for (; const auto pace = pacing.next(replay); ++tries) replay = board.at(pace->duty());
  EXPECT_EQ(*replay.megahertz, kBoost);
  EXPECT_LE(tries, Pacing::kMost);
  EXPECT_NEAR(*replay.power, *program.power, 200) << "not colder than needed";
}

// The program runs into the limit too, but less than the operator alone.
TEST(Pacing, TakesPausesBackWhereTheClockIsTooHigh) {
  const Conditions program{1850, 1, 700};
  Pacing pacing(program, 20 * kMillisecond);
  const auto first = pacing.next({1500, 1, 700});
  ASSERT_TRUE(first);
  const auto second = pacing.next({kBoost, 0, 600});
  ASSERT_TRUE(second);
  EXPECT_GT(second->duty(), first->duty());
  EXPECT_LT(second->duty(), 1);
}

TEST(Pacing, MindsALimitThatTheClockHardlyShows) {
  EXPECT_TRUE(Pacing({kBoost, 0, 500}, kMillisecond).next({0.99 * kBoost, 0.9, 700}));
}

TEST(Pacing, CannotHelpWhereTheReplayIsFaster) {
  EXPECT_FALSE(Pacing({1700, 1, 700}, kMillisecond).next({kBoost, 0, 400}));
}

TEST(Pacing, DoesNothingWhereNoClockIsKnown) {
  EXPECT_FALSE(Pacing({{}, 0, 300}, kMillisecond).next({1500, 1, 700}));
  EXPECT_FALSE(Pacing({kBoost, 0, 300}, kMillisecond).next({{}, 1, 700}));
}

TEST(Pacing, GivesUp) {
  Pacing pacing({kBoost, 0, 300}, kSecond);
  int tries = 0;
  while (pacing.next({1200, 1, 700})) ASSERT_LT(++tries, 10);
  EXPECT_GT(tries, 0);
}

TEST(Pacing, PausesAreShortAndPeriodsTheProgramsWithinBounds) {
  for (const Nanoseconds period : {kMillisecond, 20 * kMillisecond, kSecond}) {
    const auto pace = Pacing({kBoost, 0, 100}, period).next({1500, 1, 700});
    ASSERT_TRUE(pace);
    EXPECT_NEAR(pace->duty(), 1. / 7, 0.01);
    EXPECT_LE(pace->idle, 25 * kMillisecond);
    EXPECT_GE(pace->burst + pace->idle, 9 * kMillisecond);
    EXPECT_GT(pace->burst, 0);
  }
}

}  // namespace
}  // namespace joulediff::lab
