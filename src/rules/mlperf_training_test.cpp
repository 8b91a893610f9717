// The same of training and of Tiny, where most checks are nobody else's.
#include <limits>

#include "rules/test_judgements.h"

namespace joulediff::rules {
namespace {

using run::kSecond;

TEST(MlperfTraining, EachCheck) {
  const auto first = [](auto change) {
    return [change](Submission& s) { change(s.training->runs[1].meters[0]); };
  };
  expect(run::good_training(),
         {
             {"mlperf.power_folder", kFail, kFail, "result_1",
              [](Submission& s) { s.training->runs[1].power_folder = false; }},
             {"mlperf.node_names", kFail, kFail, "node_0 is missing",
              first([](run::TrainingMeter& m) { m.series.name = "node_1"; })},
             {"mlperf.node_names", kFail, kFail, "no node",
              [](Submission& s) { s.training->runs[0].meters.clear(); }},
             {"mlperf.node_names", kFail, kFail, "2 nodes",
              [](Submission& s) {
                auto& m = s.training->runs[1].meters;
                m.push_back(m[0]);
                m[1].series.name = "node_1";
              }},
             {"mlperf.run_markers", kNone, kFail, "run_start",
              [](Submission& s) { s.training->runs[1].start.reset(); }},
             {"mlperf.run_markers", kNone, kFail, "aborted",
              [](Submission& s) { s.training->runs[1].status = "aborted"; }},
             {"mlperf.power_stop", kNone, kFail, "in 1 of 3",
              first([](run::TrainingMeter& m) { m.stop = m.start; })},
             {"mlperf.metadata", kNone, kWarn, "empty string",
              first([](run::TrainingMeter& m) { m.no_metadata = 1; })},
             {"mlperf.log_clock", kNone, kFail, "+5 h", first([](run::TrainingMeter& m) {
                for (Nanoseconds& t : m.series.time) t += 18'001 * kSecond;
              })},
             {"mlperf.log_clock", kNone, kFail, "after the run", first([](run::TrainingMeter& m) {
                for (Nanoseconds& t : m.series.time) t += 70 * kSecond;
              })},
             {"mlperf.repeated_times", kNone, kFail, "20 %", first([](run::TrainingMeter& m) {
                for (std::size_t k = 5; k < m.series.size(); k += 5)
                  m.series.time[k] = m.series.time[k - 1];
              })},
             {"mlperf.hosts", kNone, kFail, "host 0",
              [](Submission& s) {
                auto& m = s.training->runs[1].meters;
                m.push_back(m[0]);
                m[1].series.name = "node_1";
              }},
             {"mlperf.switches", kNone, kWarn, "estimates",
              [](Submission& s) {
                for (auto& r : s.training->runs) {
                  r.meters.push_back(r.meters[0]);
                  r.meters[1].is_switch = true;
                  r.meters[1].series.name = "sw_0";
                }
              }},
         });
}

TEST(MlperfTraining, TheScoreByBothRules) {
  const Score score = judge(run::good_training()).score;
  // Of 600, 601 and 602 s the middle one counts: 601 s at 100 W, 121 s of 722 s at 40 W.
  EXPECT_NEAR(score.trapezoid->value, 1.25 * 60100, 30);
  EXPECT_NEAR(score.official.value(), 1.25 * 601 * (601 * 100 + 121 * 40) / 722, 80);
  ASSERT_EQ(score.windows.size(), 3U);
  EXPECT_LT(score.parts[0].joules.value, 0);
  EXPECT_THAT(score.parts[0].what, HasSubstr("whole log"));
}

TEST(MlperfTraining, AStopThatIsTheStartIsTheLastReading) {
  Submission s = run::good_training();
  const double wanted = *judge(s).score.official;
  for (run::TrainingRun& run : s.training->runs) run.meters[0].stop = run.meters[0].start;
  EXPECT_NEAR(*judge(s).score.official, wanted, 1e-9 * wanted);
}

TEST(MlperfTraining, EfficienciesSwitchesAndEstimates) {
  Submission s = run::good_training();
  const Score plain = judge(s).score;
  for (run::TrainingRun& run : s.training->runs) {
    run.meters[0].efficiency = 0.5;
    run::TrainingMeter the_switch;
    the_switch.series.name = "sw_0";
    the_switch.is_switch = true;
    the_switch.interconnect_watts = 10;
    run.meters.push_back(the_switch);
  }
  const MlperfJudgement j = judge(s);
  const double estimate = 1.25 * 601 * 10;
  EXPECT_NEAR(*j.score.ours, 0.5 * *plain.ours + estimate, 1e-6);
  EXPECT_NEAR(*j.score.official, 0.5 * *plain.official + estimate, 1e-6);
  EXPECT_EQ(j.score.standing, Standing::estimated);
  ASSERT_NE(objection(j, "BO3"), nullptr);
  EXPECT_THAT(objection(j, "BO3")->message, HasSubstr("17 %"));
  EXPECT_NE(objection(j, "BO4"), nullptr);
}

TEST(MlperfTraining, WholeLogsAreAnObjection) {
  const MlperfJudgement j = judge(run::good_training());
  EXPECT_NE(objection(j, "TW1"), nullptr);
  ASSERT_NE(objection(j, "TW2"), nullptr);
  EXPECT_THAT(objection(j, "TW2")->message, HasSubstr("20 % longer"));
}

TEST(MlperfTiny, EachCheck) {
  const auto t = [](auto change) { return [change](Submission& s) { change(*s.tiny); }; };
  expect(run::good_tiny(), {
                               {"mlperf.tiny_windows", kFail, kFail, "4 windows",
                                t([](run::Tiny& x) { x.windows.pop_back(); })},
                               {"mlperf.tiny_duration", kFail, kFail, "9.000 s",
                                t([](run::Tiny& x) { x.windows[2].end -= 2; })},
                               {"mlperf.tiny_duration", kFail, kFail, "9 inferences",
                                t([](run::Tiny& x) { x.windows[2].inferences = 9; })},
                               {"mlperf.tiny_trace", kNone, kFail, "says 300",
                                t([](run::Tiny& x) { x.reported = 300; })},
                               {"mlperf.tiny_trace", kNone, kFail, "no median",
                                t([](run::Tiny& x) { x.reported.reset(); })},
                               {"mlperf.tiny_trace", kNone, kFail, "no window",
                                t([](run::Tiny& x) { x.microjoules.clear(); })},
                               {"mlperf.tiny_samples", kNone, kFail, "70.000 s",
                                t([](run::Tiny& x) { x.microjoules.resize(70'000); })},
                               {"mlperf.tiny_quality", kFail, kFail, "Top-1 is 89, 90",
                                t([](run::Tiny& x) { x.qualities["Top-1"] = 89; })},
                               {"mlperf.tiny_quality", kFail, kFail, "0.8",
                                [](Submission& s) {
                                  s.tiny->model = "ad01";
                                  s.tiny->qualities = {{"AUC", 0.8}};
                                }},
                           });
}

TEST(MlperfTiny, SamplesThatAreNoneOrZero) {
  Submission s = run::good_tiny();
  s.tiny->microjoules[3000] = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t k = 20'000; k < 20'100; ++k) s.tiny->microjoules[k] = 0;
  const MlperfJudgement j = judge(s);
  ASSERT_NE(objection(j, "SA3"), nullptr);
  EXPECT_THAT(objection(j, "SA3")->message, HasSubstr("101 of 75000"));
  ASSERT_EQ(j.score.windows.size(), 5U);
  std::size_t unknown = 0;
  for (const MlperfWindow& window : j.score.windows) unknown += window.trapezoid ? 0 : 1;
  EXPECT_EQ(unknown, 1U) << "a window with an unknown sample has no energy";
  EXPECT_FALSE(j.score.official) << "of four windows the median is not the rule's";
}

}  // namespace
}  // namespace joulediff::rules
