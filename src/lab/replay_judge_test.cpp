#include "lab/replay_judge.h"

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

// A device whose power and time per execution are known, and a plug-in that does as it is told.
// Back to back it runs at `tight_clock`, with pauses at 1,980 MHz.
struct Bench {
  double tight_clock = 1980, paused_clock = 1980;
  Nanoseconds burst = 0, idle = 0;

  double watts = 300;
  Nanoseconds each = kMillisecond;
  double power_noise = 0;  // relative, alternating from second to second
  Nanoseconds reading_every = 100 * kMillisecond;
  Nanoseconds half_width = 2 * kMillisecond;
  Nanoseconds clock = 10 * kSecond;
  std::uint64_t executed = 0;

  double energy(Nanoseconds time) const {
    const Nanoseconds phase = time % kSecond;
    const auto surplus = static_cast<double>(std::min(phase, kSecond - phase));
    return watts * 1e-6 * (static_cast<double>(time) + power_noise * surplus);
  }
  std::vector<Reading> readings(Nanoseconds begin) const {
    std::vector<Reading> all;
    for (Nanoseconds t = (begin - kSecond) / reading_every * reading_every; t <= clock;
         t += reading_every)
      all.push_back({t, half_width, energy(t)});
    return all;
  }
  ReplayJudge judge(JudgePolicy policy, Nanoseconds budget) {
    return ReplayJudge(
        policy, [this](Nanoseconds begin) { return readings(begin); }, [=] { return budget; },
        [this](Nanoseconds begin, Nanoseconds) {
          const bool replayed = begin >= 10 * kSecond;
          return Conditions{!replayed || idle > 0 ? paused_clock : tight_clock, 0, {}};
        });
  }
  // Replays one operator until it is enough; how long that took.
  Nanoseconds replay(ReplayJudge& judge, int signature, std::uint64_t first_count = 1) {
    const Nanoseconds begin = clock;
    std::uint64_t count = first_count;
    burst = idle = 0;
    for (int chunk = 0; chunk < 10'000; ++chunk) {
      char line[128];
      const Nanoseconds from = clock;
      const auto made = static_cast<Nanoseconds>(count) * each;
      clock += made + (idle > 0 ? made * idle / burst : 0);
      executed += count;
      std::snprintf(line, sizeof line, "replay %d %ld %ld %lu", signature, from, clock, count);
      const std::string answer = judge.answer(line);
      if (answer == "enough") return clock - begin;
      if (std::sscanf(answer.c_str(), "pace %lu %ld %ld", &count, &burst, &idle) != 3) {
        EXPECT_EQ(std::sscanf(answer.c_str(), "more %lu", &count), 1) << answer;
      }
      clock += 100'000;  // the way over the socket
    }
    ADD_FAILURE() << "never enough";
    return 0;
  }
};

TEST(ReplayJudge, StopsABoardOnceSettledAndPrecise) {
  Bench bench;
  ReplayJudge judge = bench.judge(board_policy(), 100 * kSecond);
  judge.answer("plan 1");
  const Nanoseconds took = bench.replay(judge, 7);
  EXPECT_GE(took, 1500 * kMillisecond);  // settling and the least window
  EXPECT_LE(took, 2500 * kMillisecond);
  EXPECT_EQ(judge.tally().measured, 1u);
  EXPECT_EQ(judge.tally().cut, 0u);
}

TEST(ReplayJudge, GoesOnWhereThePowerScatters) {
  Bench steady, scattering;
  scattering.power_noise = 0.05;
  ReplayJudge a = steady.judge(board_policy(), 100 * kSecond);
  ReplayJudge b = scattering.judge(board_policy(), 100 * kSecond);
  a.answer("plan 1");
  b.answer("plan 1");
  EXPECT_GT(scattering.replay(b, 1), 2 * steady.replay(a, 1));
}

TEST(ReplayJudge, TicksThatAreBadlyTimedNeedALongerWindow) {
  Bench bench;
  bench.half_width = 50 * kMillisecond;
  ReplayJudge judge = bench.judge(board_policy(), 100 * kSecond);
  judge.answer("plan 1");
  EXPECT_GE(bench.replay(judge, 1), 3 * kSecond);  // 70 ms are 2 % of 3.5 s
}

TEST(ReplayJudge, AHostNeedsAQuarterOfASecond) {
  Bench bench;
  bench.half_width = 0;
  bench.reading_every = 20 * kMillisecond;
  ReplayJudge judge = bench.judge(host_policy(), 100 * kSecond);
  judge.answer("plan 1");
  const Nanoseconds took = bench.replay(judge, 1);
  EXPECT_GE(took, 250 * kMillisecond);
  EXPECT_LE(took, 500 * kMillisecond);
}

TEST(ReplayJudge, AHostNeedsTenExecutions) {
  Bench bench;
  bench.each = 100 * kMillisecond;
  bench.half_width = 0;
  bench.reading_every = 20 * kMillisecond;
  ReplayJudge judge = bench.judge(host_policy(), 100 * kSecond);
  judge.answer("plan 1");
  bench.replay(judge, 1);
  EXPECT_GE(bench.executed, 10u);
}

TEST(ReplayJudge, ChunksLastAQuarterOfASecond) {
  Bench bench;
  ReplayJudge judge = bench.judge(board_policy(), 100 * kSecond);
  judge.answer("plan 1");
  EXPECT_EQ(judge.answer("replay 1 10000000000 10010000000 10"), "more 250");
  EXPECT_EQ(judge.answer("replay 2 10000000000 12000000000 1"), "more 1");
}

TEST(ReplayJudge, TheBudgetIsSharedAndWhatIsSavedGoesToTheRest) {
  Bench bench;
  bench.power_noise = 0.5;  // not precise in time
  ReplayJudge judge = bench.judge(board_policy(), 8 * kSecond);
  judge.answer("plan 4");
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double>(bench.replay(judge, i)), 2e9, 0.6e9) << i;
  EXPECT_EQ(judge.tally().cut, 4u);
  EXPECT_NEAR(static_cast<double>(judge.tally().spent), 8e9, 1e9);
}

TEST(ReplayJudge, ASmallBudgetMeasuresFewOperatorsWell) {
  Bench bench;
  bench.power_noise = 0.5;
  ReplayJudge judge = bench.judge(board_policy(), 5 * kSecond);
  EXPECT_EQ(judge.answer("plan 92"), "replay 6");
  for (int i = 0; i < 6; ++i) EXPECT_GE(bench.replay(judge, i), board_policy().least_share) << i;
  EXPECT_EQ(judge.tally().planned, 92u);
  EXPECT_EQ(judge.tally().cut, 92u);
}

TEST(ReplayJudge, ASpentBudgetStillMeasuresTheFloor) {
  Bench bench;
  ReplayJudge judge = bench.judge(board_policy(), 0);
  EXPECT_EQ(judge.answer("plan 92"), "replay 4");
  EXPECT_GE(bench.replay(judge, 1), board_policy().least_share);
  EXPECT_EQ(bench.judge(board_policy(), 0).answer("plan 2"), "replay 2");
}

TEST(ReplayJudge, WithoutAMeterTheShareIsUsedUp) {
  ReplayJudge judge(
      board_policy(), [](Nanoseconds) { return std::vector<Reading>(); },
      [] { return 2 * kSecond; });
  judge.answer("plan 1");
  EXPECT_THAT(judge.answer("replay 1 0 1000000000 10"), testing::StartsWith("more"));
  EXPECT_EQ(judge.answer("replay 1 1000000000 2100000000 10"), "enough");
}

TEST(ReplayJudge, PacesWhatRunsAtAnotherClockThanTheProgram) {
  Bench bench;
  bench.tight_clock = 1500;
  ReplayJudge judge = bench.judge(board_policy(), 100 * kSecond);
  EXPECT_EQ(judge.answer("trace 1000000000 9000000000 100"), "");
  judge.answer("plan 1");
  const Nanoseconds took = bench.replay(judge, 1);
  EXPECT_GT(bench.idle, 0);
  EXPECT_GT(took, 2100 * kMillisecond) << "both measurements";
  EXPECT_LT(took, 5 * kSecond);
  EXPECT_EQ(judge.tally().paced, 1u);
  EXPECT_EQ(judge.tally().measured, 1u);
}

TEST(ReplayJudge, LeavesTheProgramsClockAlone) {
  for (const char* trace : {"trace 1000000000 9000000000 100", ""}) {
    Bench bench;
    bench.tight_clock = *trace ? 1980 : 1500;  // no trace: nothing to compare with
    ReplayJudge judge = bench.judge(board_policy(), 100 * kSecond);
    judge.answer(trace);
    judge.answer("plan 1");
    bench.replay(judge, 1);
    EXPECT_EQ(bench.idle, 0);
    EXPECT_EQ(judge.tally().paced, 0u);
  }
}

// One that no pause brings there is measured as it is, in its share of the budget.
TEST(ReplayJudge, DoesNotPaceForEver) {
  Bench bench;
  bench.tight_clock = 1500;
  ReplayJudge judge = ReplayJudge(
      board_policy(), [&](Nanoseconds begin) { return bench.readings(begin); },
      [] { return 100 * kSecond; },
      [](Nanoseconds begin, Nanoseconds) {
        return Conditions{begin < 10 * kSecond ? 1980. : 1500., 0, {}};
      });
  judge.answer("trace 1000000000 9000000000 100");
  judge.answer("plan 1");
  EXPECT_LT(bench.replay(judge, 1), 10 * kSecond);
}

TEST(ReplayJudge, ColdOnesComeWhereAllOthersHaveEnough) {
  Bench bench;
  EXPECT_EQ(bench.judge(board_policy(), 100 * kSecond).answer("plan 10 8"), "replay 10 8");
  EXPECT_EQ(bench.judge(board_policy(), 21 * kSecond).answer("plan 10 8"), "replay 10 2");
  EXPECT_EQ(bench.judge(board_policy(), 8 * kSecond).answer("plan 10 8"), "replay 10 0");
}

TEST(ReplayJudge, NonsenseEndsTheOperatorAndNothingElse) {
  Bench bench;
  ReplayJudge judge = bench.judge(board_policy(), kSecond);
  EXPECT_EQ(judge.answer("plan"), "");
  EXPECT_EQ(judge.answer("hello"), "");
  EXPECT_EQ(judge.answer("replay "), "enough");
  EXPECT_EQ(judge.answer("replay 1 5 4 1"), "enough");
  EXPECT_EQ(judge.answer("replay 1 4 5 0"), "enough");
  for (const char* plan : {"plan 99999999999999999999", "plan -5", "plan 18446744073709551610",
                           "plan 5 5 5", "plan 5 -5", "plan 0x5", "plan ", "plan 1e3"})
    EXPECT_EQ(judge.answer(plan), "replay 0") << plan;
  for (const char* trace :
       {"trace 5 4 1", "trace 4 5 0", "trace 1 2", "trace 0 99999999999999999999 1"})
    EXPECT_EQ(judge.answer(trace), "") << trace;
  for (const char* chunk :
       {"replay 1 -1000000000 1 10", "replay 1 0 9223372036854775807 1", "replay 1 1 2 -1",
        "replay 1 0 99999999999999999999 1", "replay 1 1 2 3 4", "replay 1  1 2 3"})
    EXPECT_EQ(judge.answer(chunk), "enough") << chunk;
  EXPECT_EQ(judge.tally().planned, 0u);
  EXPECT_EQ(judge.tally().spent, 0);
  EXPECT_EQ(judge.tally().refused, 23u);
}

}  // namespace
}  // namespace joulediff::lab
