// Each check of a session: a submission without a fault passes it, one that is spoiled does not.
#include "rules/test_judgements.h"

namespace joulediff::rules {
namespace {

using run::Inference;
using run::kSecond;

// One more complaint of the daemon, `after` seconds into the testing window.
void complain(Submission& s, double after, Severity severity, const std::string& text,
              std::optional<double> uncertainty = {}, bool multichannel = false) {
  run::PtdLog& ptd = s.inference->ptd;
  ptd.texts.push_back(text);
  ptd.events.push_back({run::kTestingBegin + static_cast<Nanoseconds>(after * 1e9), severity,
                        static_cast<std::uint32_t>(ptd.texts.size() - 1), uncertainty,
                        multichannel});
}

constexpr const char* kOver = "Uncertainty N%, which is above N% limit for the last sample!";

TEST(MlperfInference, EachCheck) {
  const auto i = [](auto change) { return [change](Submission& s) { change(*s.inference); }; };
  const auto shift = [](Inference& x, Nanoseconds by) {
    for (run::InferencePart* part : {&x.ranging, &x.testing}) {
      *part->loadgen.power_begin += by;
      *part->loadgen.power_end += by;
    }
  };
  expect(
      run::good_inference(),
      {
          {"mlperf.client_sources", kNone, kFail, "client.py",
           i([](Inference& x) { x.client.sources["client.py"] = "zz"; })},
          {"mlperf.client_sources", kFail, kFail, "names no source",
           i([](Inference& x) { x.client.sources.clear(); })},
          {"mlperf.server_sources", kNone, kFail, "common.py",
           i([](Inference& x) { x.server.sources["lib/common.py"] = "zz"; })},
          {"mlperf.ptd_replies", kFail, kFail, "no exchange",
           i([](Inference& x) { x.server.ptd_messages.clear(); })},
          {"mlperf.ptd_replies", kFail, kFail, "Fluke",
           i([](Inference& x) { x.server.ptd_messages[1].reply = "Fluke,1"; })},
          {"mlperf.ptd_replies", kFail, kFail, "1.9.1", i([](Inference& x) {
             x.server.ptd_messages[1].reply = "YokogawaWT330,version=1.9.1-a";
           })},
          {"mlperf.ptd_replies", kFail, kFail, "Range busy",
           i([](Inference& x) { x.server.ptd_messages[3].reply = "Range busy"; })},
          {"mlperf.ptd_replies", kFail, kFail, "left as SR,A,0.55",
           i([](Inference& x) { x.server.ptd_messages.pop_back(); })},
          {"mlperf.uuid", kFail, kFail, "UUID",
           i([](Inference& x) { x.client.server_uuid = "x"; })},
          {"mlperf.uuid", kFail, kFail, "missing", i([](Inference& x) { x.client.file.clear(); })},
          {"mlperf.session", kFail, kFail, "other",
           i([](Inference& x) { x.client.name = "other"; })},
          {"mlperf.clocks", kPass, kWarn, "500 ms",
           i([](Inference& x) { x.client.phases["testing"][3].unix_time -= 0.499; })},
          {"mlperf.clocks", kFail, kFail, "901 ms",
           i([](Inference& x) { x.client.phases["ranging"][0].unix_time -= 0.9; })},
          {"mlperf.clocks", kFail, kFail, "3 and 4",
           i([](Inference& x) { x.client.phases["ranging"].pop_back(); })},
          {"mlperf.windows", kPass, kFail, "daylight saving",
           i([&](Inference& x) { shift(x, 3600 * kSecond); })},
          {"mlperf.windows", kFail, kFail, "-5 h",
           i([&](Inference& x) { shift(x, -5 * 3600 * kSecond); })},
          {"mlperf.windows", kFail, kFail, "outside",
           i([](Inference& x) { *x.testing.loadgen.power_end += 60 * kSecond; })},
          {"mlperf.windows", kFail, kFail, "power_begin",
           i([](Inference& x) { x.testing.loadgen.power_begin.reset(); })},
          {"mlperf.windows", kFail, kFail, "power_end",
           i([](Inference& x) { x.ranging.loadgen.power_end.reset(); })},
          {"mlperf.durations", kWarn, kWarn, "200.0 s", i([](Inference& x) {
             x.testing.loadgen.power_end = *x.testing.loadgen.power_begin + 200 * kSecond;
           })},
          {"mlperf.reference_power", kFail, kFail, "-10 %", i([](Inference& x) {
             for (double& w : x.testing.power.total.watts) w *= 0.9;
           })},
          {"mlperf.messages", kFail, kFail, "3 messages",
           i([](Inference& x) { x.server.messages.pop_back(); })},
          {"mlperf.messages", kFail, kFail, "message 3",
           i([](Inference& x) { x.client.messages[2].reply = "NO"; })},
          {"mlperf.messages", kFail, kFail, "versions", i([](Inference& x) {
             x.server.messages[0].reply = x.client.messages[0].reply = "mlcommons/power server v2";
           })},
          {"mlperf.hashes", kFail, kFail, "1 missing: power/client.log",
           i([](Inference& x) { x.files.erase("power/client.log"); })},
          {"mlperf.hashes", kFail, kFail, "1 of 9 files changed",
           i([](Inference& x) { x.files["run_1/spl.txt"] = "x"; })},
          {"mlperf.hashes", kFail, kFail, "no hash",
           i([](Inference& x) { x.server.results.erase("run_1/spl.txt"); })},
          {"mlperf.uncertainty_on", kFail, kFail, "did not judge",
           i([](Inference& x) { x.ptd.uncertainty_activated.reset(); })},
          {"mlperf.uncertainty_on", kFail, kFail, "after ranging",
           i([](Inference& x) { x.ptd.uncertainty_activated = *x.ptd.ranging_begin + 1; })},
          {"mlperf.uncertainty_on", kFail, kFail, "no begin and end",
           i([](Inference& x) { x.ptd.ranging_end.reset(); })},
          {"mlperf.meter_errors", kFail, kFail, "1 errors in the window",
           [](Submission& s) {
             complain(s, 60, Severity::error, "Bad watts reading nan from WT");
           }},
          {"mlperf.meter_errors", kWarn, kWarn, "1 of unusual kinds",
           [](Submission& s) {
             complain(s, -700, Severity::error, "Bad watts reading N from WT");
           }},
          {"mlperf.uncertainty", kPass, kFail, "the worst 1.2 %",
           [](Submission& s) { complain(s, 60, Severity::warning, kOver, 0.012); }},
          {"mlperf.uncertainty", kPass, kWarn, "the uncertainty of 1 reading",
           [](Submission& s) {
             complain(s, 60, Severity::warning,
                      "Uncertainty unknown for the last measurement sample!");
           }},
          {"mlperf.analyzer", kFail, kFail, "device 7",
           i([](Inference& x) { x.server.analyzers[0].device = 7; })},
          {"mlperf.analyzer", kFail, kFail, "1 channels",
           i([](Inference& x) { x.server.analyzers[0].device = 77; })},
          {"mlperf.analyzer", kFail, kFail, "which meter",
           i([](Inference& x) { x.server.analyzers.clear(); })},
          {"mlperf.debug", kFail, kFail, "debug", i([](Inference& x) { x.server.debug = true; })},
          {"mlperf.valid", kNone, kFail, "INVALID",
           i([](Inference& x) { x.testing.loadgen.validity = "INVALID"; })},
          {"mlperf.valid", kNone, kFail, "2 errors",
           i([](Inference& x) { x.testing.loadgen.errors = 2; })},
          {"mlperf.duration", kNone, kFail, "599.0 s", i([](Inference& x) {
             x.testing.loadgen.power_end = *x.testing.loadgen.power_begin + 599 * kSecond;
           })},
          {"mlperf.fixed_range", kNone, kFail, "Auto",
           i([](Inference& x) { x.server.ptd_messages[8].command = "SR,A,Auto"; })},
          {"mlperf.peak_current", kNone, kFail, "1 times",
           [](Submission& s) {
             complain(s, 60, Severity::error,
                      "Current exceeds peak value allowed for range NA and CF N.");
           }},
          {"mlperf.log_clock", kNone, kFail, "+1 h", i([](Inference& x) {
             for (Nanoseconds& t : x.testing.power.total.time) t += 3600 * kSecond;
           })},
          {"mlperf.log_clock", kNone, kFail, "changed places", i([](Inference& x) {
             for (Nanoseconds& t : x.testing.power.total.time) t += 150 * 86400 * kSecond;
           })},
          {"mlperf.log_clock", kNone, kFail, "readings span", i([](Inference& x) {
             x.testing.power.total.time.resize(300);
             x.testing.power.total.watts.resize(300);
           })},
          {"mlperf.summary", kNone, kFail, "999",
           i([](Inference& x) { x.testing.loadgen.summary_rate = 999; })},
          {"mlperf.summary", kNone, kFail, "Server",
           i([](Inference& x) { x.testing.loadgen.summary_scenario = "Server"; })},
          {"mlperf.summary", kNone, kFail, "unknown in the detail",
           i([](Inference& x) { x.testing.loadgen.scenario.clear(); })},
          {"mlperf.summary", kNone, kWarn, "says anything", i([](Inference& x) {
             x.testing.loadgen.summary_scenario.clear();
             x.testing.loadgen.summary_validity.clear();
           })},
          {"mlperf.valid", kNone, kFail, "no result_samples_per_second",
           i([](Inference& x) { x.testing.loadgen.samples_per_second.reset(); })},
          {"mlperf.valid", kNone, kFail, "no result_query_count", i([](Inference& x) {
             x.testing.loadgen.scenario = x.testing.loadgen.summary_scenario = "SingleStream";
             x.testing.loadgen.query_count.reset();
           })},
          {"mlperf.filed", kNone, kWarn, "analyzer_table",
           i([](Inference& x) { x.analyzer_table = false; })},
      });
}

TEST(MlperfInference, SourcesAreHeldAgainstTheReleases) {
  Submission s = run::good_inference();
  s.inference->server.sources = s.inference->client.sources;
  EXPECT_EQ(find(judge(s, {s.inference->client.sources}), "mlperf.client_sources")->official,
            kPass);
  const MlperfJudgement other = judge(s, {{{"client.py", "other"}}});
  EXPECT_EQ(find(other, "mlperf.client_sources")->official, kFail);
  EXPECT_EQ(find(other, "mlperf.server_sources")->ours, kFail);
}

// The defects of the official scan, one by one.
TEST(MlperfInference, MillisecondsAddedToSeconds) {
  Submission s = run::good_inference();
  complain(s, 60, Severity::warning, kOver, 0.012);
  const MlperfCheck* check = nullptr;
  const MlperfJudgement judgement = judge(s);
  ASSERT_NE(check = find(judgement, "mlperf.uncertainty"), nullptr);
  EXPECT_THAT(check->why, HasSubstr("1600 s"));
}

TEST(MlperfInference, AWarningHidesWhatFollows) {
  Submission s = run::good_inference();
  complain(s, -700, Severity::error, "Bad watts reading N from WT");
  complain(s, 60, Severity::error, "Bad watts reading nan from WT");
  const MlperfJudgement judgement = judge(s);
  const MlperfCheck* check = find(judgement, "mlperf.meter_errors");
  EXPECT_EQ(check->official, kWarn);
  EXPECT_EQ(check->ours, kFail);
  EXPECT_THAT(check->why, HasSubstr("first warning"));
}

TEST(MlperfInference, TheWordsOfSeveralChannels) {
  Submission s = run::good_inference();
  // A run long enough for the checker to look at anything.
  Inference& i = *s.inference;
  i.testing.power.total = run::readings(run::kTestingBegin - 10 * kSecond, 2000, run::kTestingBegin,
                                        run::kTestingBegin + 1900 * kSecond);
  i.testing.loadgen.power_end = run::kTestingBegin + 1900 * kSecond;
  Submission single = s;
  complain(single, 900, Severity::warning, kOver, 0.012);
  EXPECT_EQ(find(judge(single), "mlperf.uncertainty")->official, kFail);
  complain(s, 900, Severity::warning, kOver, 0.012, true);
  const MlperfJudgement judgement = judge(s);
  const MlperfCheck* check = find(judgement, "mlperf.uncertainty");
  EXPECT_EQ(check->official, kWarn);
  EXPECT_EQ(check->ours, kFail);
  EXPECT_THAT(check->why, HasSubstr("several channels"));
}

TEST(MlperfInference, TheMetricByBothRules) {
  const Score score = judge(run::good_inference()).score;
  EXPECT_EQ(score.metric, "samples/J");
  EXPECT_NEAR(score.official.value(), 10, 0.01);
  EXPECT_NEAR(score.ours.value(), 10, 0.02);
  EXPECT_NEAR(score.trapezoid->value, 61000, 150);  // the edges hold less than a second at 40 W
  EXPECT_EQ(score.units, 610'000);
  EXPECT_EQ(score.standing, Standing::measured);
  EXPECT_FALSE(score.bridged.has_value());
}

TEST(MlperfInference, NegativeReadingsAreNotDroppedUnsaid) {
  Submission s = run::good_inference();
  for (std::size_t k = 100; k < 161; ++k) s.inference->testing.power.total.watts[k] = -100;
  const MlperfJudgement j = judge(s);
  EXPECT_NEAR(j.score.official_watts->value, 100, 0.1);
  EXPECT_NEAR(j.score.trapezoid->value, 61000 - 61 * 200, 200);
  EXPECT_NEAR(j.score.bridged->value, 61000, 150);
  EXPECT_EQ(j.score.standing, Standing::estimated);
  ASSERT_NE(objection(j, "SA3"), nullptr);
  EXPECT_THAT(objection(j, "SA3")->message, HasSubstr("61 of 610"));
  ASSERT_FALSE(j.score.parts.empty());
  EXPECT_THAT(j.score.parts[0].what, HasSubstr("61 of 610"));
  EXPECT_NEAR(j.score.parts[0].joules.value, 61 * 200, 20);
}

TEST(MlperfInference, StreamsCountQueries) {
  Submission s = run::good_inference();
  run::LoadGenLog& log = s.inference->testing.loadgen;
  log.scenario = "SingleStream";
  log.samples_per_second.reset();
  log.query_count = 61'000;
  const Score score = judge(s).score;
  EXPECT_EQ(score.metric, "mJ/stream");
  EXPECT_NEAR(score.official.value(), 1000, 1);
}

TEST(MlperfInference, AnalyzersAreIntegratedByTheirOwnClocks) {
  Submission s = run::good_inference();
  run::PowerLog& power = s.inference->testing.power;
  power.analyzers = {power.total, power.total};
  for (double& watts : power.analyzers[0].watts) watts *= 0.25;
  for (double& watts : power.analyzers[1].watts) watts *= 0.75;
  for (Nanoseconds& time : power.analyzers[1].time) time += 260'000'000;
  const MlperfJudgement j = judge(s);
  EXPECT_NEAR(j.score.trapezoid->value, 61000, 150);
  ASSERT_NE(objection(j, "BO6"), nullptr);
  EXPECT_THAT(objection(j, "BO6")->message, HasSubstr("2 meters"));
}

// What the tasks ask for, and how accuracy.txt says what was reached.
TEST(MlperfInference, QualityIsHeldAgainstTheTasksTarget) {
  struct Task {
    const char *benchmark, *accuracy;
    Checked ours;
    const char* says;
  };
  for (const Task& one : {
           Task{"bert-99", "{\"exact_match\": 82.9, \"f1\": 89.966}", kPass, ""},
           Task{"bert-99", "{\"exact_match\": 82.9, \"f1\": 89.965}", kFail,
                "F1 is 89.965, 89.9653"},
           Task{"bert-99.9", "{\"exact_match\": 83.9, \"f1\": 90.7}", kFail,
                "90.7831 is the least"},
           Task{"resnet50", "warming up\naccuracy=76.1%, good=38050, total=50000", kPass, ""},
           Task{"resnet50", "accuracy=75.6%, good=37800, total=50000", kFail, "accuracy is 75.6"},
           Task{"rnnt", "Word Error Rate: 0.0746, accuracy=92.54%", kPass, ""},
           Task{"dlrm-v2-99.9", "AUC=80.2", kFail, "AUC is 80.2"},
           Task{"3d-unet-99", "Accuracy: mean = 0.86, kidney = 0.9", kPass, ""},
           Task{"llama2-70b-99", "{'rouge1': 44.3, 'rouge2': 21.9, 'rougeL': '28.5', 'gen_num': 1}",
                kPass, ""},
           Task{"llama2-70b-99", "{'rouge1': 44.3, 'rouge2': 21.0, 'rougeL': 28.5}", kFail,
                "ROUGE-2 is 21"},
           Task{"llama2-70b-99", "{'rouge1': 44.3, 'rouge2': 21.9}", kNone, "states no ROUGE-L"},
           Task{"bert-99", "f1 unknown", kNone, "accuracy/accuracy.txt states no F1"},
           Task{"bert-99", "\"f1\": nan", kNone, "states no F1"},
           Task{"stable-diffusion-xl", "{'FID_SCORE': 23.5}", kNone,
                "what quality stable-diffusion-xl asks for is not known"},
           Task{"", "accuracy=99%", kNone, "what quality the task asks for is not known"},
       }) {
    Submission s = run::good_inference();
    s.benchmark = one.benchmark;
    s.inference->accuracy = one.accuracy;
    const MlperfJudgement j = judge(s);
    const MlperfCheck* check = find(j, "mlperf.quality");
    ASSERT_NE(check, nullptr);
    EXPECT_EQ(check->ours, one.ours) << one.benchmark << ": " << one.accuracy << check->message;
    EXPECT_THAT(check->message, HasSubstr(one.says));
    EXPECT_EQ(j.point.quality.value.has_value(), one.ours != kNone) << one.accuracy;
    EXPECT_EQ(j.ours == kFail, one.ours == kFail);
  }
}

TEST(MlperfInference, NothingToMeasureIsUnknown) {
  Submission s = run::good_inference();
  s.inference->testing.power = {};
  const Score score = judge(s).score;
  EXPECT_FALSE(score.official.has_value());
  EXPECT_FALSE(score.trapezoid.has_value());
  s.inference = Inference{};
  EXPECT_EQ(judge(s).ours, kFail);
}

}  // namespace
}  // namespace joulediff::rules
