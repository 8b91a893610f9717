#include "lab/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A process that made its passes `passes` seconds after its begin, replay included, and then went
// on.
Launched process(double passes, double replay, double after) {
  const auto time = [](double seconds) { return static_cast<Nanoseconds>(seconds * 1e9); };
  Launched launched;
  launched.begin = 100 * kSecond;
  launched.done = launched.begin + time(passes + replay);
  launched.end = launched.done + time(after);
  launched.replay.spent = time(replay);
  return launched;
}

std::string why(const Budget& budget, const std::vector<Launched>& processes) {
  Spent spent;
  Nanoseconds elapsed = 0;
  for (const Launched& launched : processes) {
    spent.add(launched);
    elapsed += launched.end - launched.begin;
  }
  const auto told = over_budget(budget, elapsed, spent);
  return told ? told->message : "";
}

TEST(Budget, WithinItNothingIsSaid) {
  EXPECT_EQ(why({30 * kSecond}, {process(5, 5, 5), process(5, 5, 5)}), "");
}

TEST(Budget, AProgramThatGoesOnAfterItsPassesIsTheCause) {
  EXPECT_THAT(why({20 * kSecond}, {process(4, 2, 9), process(4, 2, 9)}),
              AllOf(HasSubstr("took 30.0 s, over its budget of 20.0 s"),
                    HasSubstr("its 2 processes went on for 18.0 s"), HasSubstr("--stop"),
                    Not(HasSubstr("trace"))));
  EXPECT_THAT(why({20 * kSecond, true}, {process(4, 2, 18)}),
              AllOf(HasSubstr("its process went on for 18.0 s"), HasSubstr("when --stop asks")));
}

TEST(Budget, PassesThatTookTooLongAreTheCause) {
  EXPECT_THAT(why({20 * kSecond}, {process(14, 0.5, 1), process(14, 0.5, 1)}),
              AllOf(HasSubstr("its 2 processes took 28.0 s"),
                    HasSubstr("all passes but the replay; give fewer --trace-seconds")));
}

TEST(Budget, WithoutReplayNobodySpeaksOfIt) {
  EXPECT_THAT(why({20 * kSecond}, {process(25, 0, 0)}),
              AllOf(HasSubstr("its process took 25.0 s"), Not(HasSubstr("replay"))));
}

TEST(Budget, ReplaysThatTookTooLongAreTheCause) {
  EXPECT_THAT(why({10 * kSecond}, {process(4, 20, 0)}), HasSubstr("the replays alone took 20.0 s"));
}

// Such as one that ended, or was recorded by kernels alone, before it could say so.
TEST(Budget, AProcessThatNeverSaidDoneMadePassesToItsEnd) {
  Launched launched = process(5, 0, 20);
  launched.done = 0;
  EXPECT_THAT(why({20 * kSecond}, {launched}), HasSubstr("took 25.0 s to start and to make"));
}

TEST(Budget, ReplaysThatWereCutAreCounted) {
  EXPECT_FALSE(replays_cut({kSecond}, {5, 5, 0, 0}));
  const auto told = replays_cut({180 * kSecond}, {9, 6, 3, 0});
  ASSERT_TRUE(told);
  EXPECT_THAT(told->message, HasSubstr("3 of 9 replays had their share of the budget of 3 min"));
  EXPECT_EQ(told->count, 1u);
}

}  // namespace
}  // namespace joulediff::lab
