// Submissions written and read back, whole and spoiled.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "import/mlperf/mllog.h"
#include "import/mlperf/power_log.h"
#include "import/mlperf/session.h"
#include "import/mlperf/test_files.h"
#include "import/mlperf/text.h"
#include "import/mlperf/tiny.h"
#include "import/mlperf/tree.h"

namespace joulediff::mlperf {
namespace {

using testing::HasSubstr;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "mlperf_test.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

run::Submission read_only_one(const fs::path& folder) {
  const auto found = find_submissions(folder.string());
  EXPECT_TRUE(found.has_value());
  EXPECT_EQ(found->size(), 1U);
  return read_submission(found->front());
}

const Diagnostic* find(const Diagnostics& diagnostics, const std::string& rule) {
  const auto found = std::ranges::find(diagnostics, rule, &Diagnostic::rule);
  return found == diagnostics.end() ? nullptr : &*found;
}

void expect_equal(const run::PowerSeries& a, const run::PowerSeries& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.time, b.time);
  ASSERT_EQ(a.watts.size(), b.watts.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.watts[i], b.watts[i], 1e-6);
}

TEST(Text, NumbersAreReadAsTheLibraryReadsThem) {
  for (const char* text : {"32.530000", "-37.01", "0", "-0.5", "99100000000000005192630646116.0",
                           "9.91E+37", "1e-3", "123456789012345678", "3.14159265358979312"})
    EXPECT_EQ(number(text), std::strtod(text, nullptr)) << text;
  for (const char* text : {"", "-", ".", "nan", "inf", "1.2.3", "12 ", "0x10", "1e999", "--1"})
    EXPECT_FALSE(number(text).has_value()) << text;
}

RC_GTEST_PROP(Text, EveryNumberOfALog, (std::int32_t whole, std::uint32_t part)) {
  const std::string text = fmt::format("{}.{:06}", whole, part % 1'000'000);
  RC_ASSERT(number(text) == std::strtod(text.c_str(), nullptr));
}

TEST(Text, TimesOfDay) {
  EXPECT_EQ(Clock().read("01-02-1970 00:00:00.500"), 86'400'500'000'000);
  EXPECT_EQ(Clock(true).read("02-01-1970 00:00:00.500"), 86'400'500'000'000);
  EXPECT_EQ(Clock().read("07-12-2024 23:12:57.304"), run::kTestingBegin);
  for (const char* wrong :
       {"", "13-01-2024 00:00:00.000", "02-30-2024 00:00:00.000", "07-12-2024T00:00:00.000",
        "07-12-2024 24:00:00.000", "07-12-2024 00:00:00.", "07-12-2024 00:00:00.1x",
        "7-12-2024 00:00:00", "07-12-9999 00:00:00.000"})
    EXPECT_FALSE(Clock().read(wrong).has_value()) << wrong;
}

TEST(Text, FieldsOfALineOfJson) {
  const std::string line = R"({"a": "x \"key\": 1", "key": "power_reading", "value": 3, "t":4})";
  EXPECT_EQ(json_field(line, "key"), "power_reading");
  EXPECT_EQ(json_field(line, "value"), "3");
  EXPECT_EQ(json_field(line, "t"), "4");
  EXPECT_FALSE(json_field(line, "none").has_value());
  EXPECT_FALSE(json_field(R"({"key": "cut)", "key").has_value());
}

TEST(Inference, WhatIsWrittenIsRead) {
  const Folder folder;
  run::Submission wanted = run::good_inference();
  wanted.inference->testing.power.channels = 2;
  write_submission(wanted, folder.path() / "results" / "box" / "bert-99" / "Offline");
  const run::Submission got = read_only_one(folder.path());
  ASSERT_TRUE(got.inference.has_value());
  EXPECT_TRUE(got.diagnostics.empty()) << got.diagnostics.front().message;
  const run::Inference &i = *got.inference, &w = *wanted.inference;
  EXPECT_EQ(got.system, "box");
  EXPECT_EQ(got.benchmark, "bert-99");
  EXPECT_EQ(got.scenario, "Offline");
  expect_equal(i.testing.power.total, w.testing.power.total);
  expect_equal(i.ranging.power.total, w.ranging.power.total);
  EXPECT_EQ(i.testing.power.channels, 2U);
  EXPECT_LT(i.testing.power.channel_error, 1e-5);
  EXPECT_EQ(i.testing.loadgen.power_begin, w.testing.loadgen.power_begin);
  EXPECT_EQ(i.testing.loadgen.power_end, w.testing.loadgen.power_end);
  EXPECT_EQ(i.testing.loadgen.validity, "VALID");
  EXPECT_EQ(i.testing.loadgen.samples_per_second, 1000);
  EXPECT_EQ(i.testing.loadgen.summary_rate, 1000);
  EXPECT_EQ(i.testing.loadgen.errors, 0U);
  EXPECT_EQ(i.client.name, w.client.name);
  EXPECT_EQ(i.server.client_uuid, w.server.client_uuid);
  EXPECT_EQ(i.server.ptd_messages.size(), w.server.ptd_messages.size());
  EXPECT_EQ(i.server.phases.at("testing").size(), 4U);
  EXPECT_EQ(i.server.analyzers.at(0).device, 52);
  EXPECT_EQ(i.files.size(), 11U);
  EXPECT_EQ(i.files.at("run_1/spl.txt"), i.server.results.at("run_1/spl.txt"));
  EXPECT_EQ(i.ptd.events.size(), 1U);
  EXPECT_EQ(i.ptd.ranging_begin, w.ptd.ranging_begin);
  EXPECT_EQ(i.ptd.ranging_end, w.ptd.ranging_end);
  EXPECT_EQ(i.ptd.uncertainty_activated, w.ptd.uncertainty_activated);
  EXPECT_TRUE(i.analyzer_table);
  EXPECT_EQ(got.description.at("submitter"), "Somebody");
}

TEST(Inference, EachMissingFileIsSaid) {
  for (const char* file :
       {"power/client.json", "power/server.json", "power/ptd_logs.txt", "power/client.log",
        "power/server.log", "run_1/spl.txt", "run_1/mlperf_log_detail.txt",
        "run_1/mlperf_log_summary.txt", "ranging/spl.txt", "ranging/mlperf_log_detail.txt"}) {
    const Folder folder;
    write_submission(run::good_inference(), folder.path());
    fs::remove(folder.path() / "performance" / file);
    const run::Submission got = read_only_one(folder.path());
    const Diagnostic* missing = find(got.diagnostics, "mlperf.missing_file");
    ASSERT_NE(missing, nullptr) << file;
    EXPECT_THAT(missing->message, HasSubstr(file));
  }
}

TEST(Inference, AFolderInPlaceOfAFileIsSaid) {
  const Folder folder;
  write_submission(run::good_inference(), folder.path());
  fs::remove(folder.path() / "performance/run_1/spl.txt");
  fs::create_directory(folder.path() / "performance/run_1/spl.txt");
  EXPECT_NE(find(read_only_one(folder.path()).diagnostics, "mlperf.unreadable"), nullptr);
}

TEST(Inference, SeveralAnalyzersKeepTheirClocks) {
  run::PowerLog log = run::part("run_1", run::kTestingBegin).power;
  log.analyzers = {log.total, log.total};
  log.analyzers[0].name = "analyzer 1";
  log.analyzers[1].name = "analyzer 2";
  for (Nanoseconds& time : log.analyzers[1].time) time += 260'000'000;
  Diagnostics diagnostics;
  const run::PowerLog got = read_power_log("spl.txt", spl_text(log), diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  ASSERT_EQ(got.analyzers.size(), 2U);
  expect_equal(got.analyzers[0], log.analyzers[0]);
  expect_equal(got.analyzers[1], log.analyzers[1]);
}

struct Spoiled {
  const char* name;
  const char* line;
  const char* rule;
};

// After one good line: what is wrong is said, and the good line is kept.
TEST(PowerLog, EachFaultOfALine) {
  const std::string good = "Time,07-12-2024 23:12:12.830,Watts,10.5,Volts,239,Amps,3,PF,0.9,Mark,m";
  const Spoiled faults[] = {
      {"no time", "Watts,10.5,Volts,239,Amps,3,PF,0.9,Mark,m", "mlperf.no_time"},
      {"cut", "Time,07-12-2024 23:1", "mlperf.no_time"},
      {"no watts", "Time,07-12-2024 23:12:13.830,Volts,239,Amps,3,PF,0.9", "mlperf.no_watts"},
      {"empty watts", "Time,07-12-2024 23:12:13.830,Watts,,Volts,239", "mlperf.no_watts"},
      {"nan", "Time,07-12-2024 23:12:13.830,Watts,nan,Volts,239", "mlperf.no_number"},
      {"words", "Time,07-12-2024 23:12:13.830,Watts,many,Volts,239", "mlperf.no_number"},
      {"another day of the calendar", "Time,02-30-2024 23:12:13.830,Watts,1", "mlperf.no_time"},
      {"analyzers",
       "Time,07-12-2024 23:12:13.830,Watts,1,Analyzer1,Time,07-12-2024 23:12:13.8,"
       "Watts,1",
       "mlperf.analyzers"},
      {"bytes", "\xff\xfe\x01", "mlperf.no_time"}};
  for (const Spoiled& fault : faults) {
    Diagnostics diagnostics;
    const run::PowerLog log =
        read_power_log("spl.txt", good + "\r\n" + fault.line + "\n", diagnostics);
    ASSERT_NE(find(diagnostics, fault.rule), nullptr) << fault.name;
    EXPECT_THAT(find(diagnostics, fault.rule)->message, HasSubstr("spl.txt:2")) << fault.name;
    ASSERT_GE(log.total.size(), 1U) << fault.name;
    EXPECT_EQ(log.total.watts[0], 10.5);
  }
}

TEST(PowerLog, OverflowsAreKeptAsTheyStand) {
  Diagnostics diagnostics;
  const run::PowerLog log =
      read_power_log("spl.txt", "Time,07-12-2024 23:12:12.830,Watts,9.91E37\n", diagnostics);
  EXPECT_EQ(log.total.watts.at(0), 9.91e37);
}

TEST(PowerLog, DaysBeforeMonthsAreFoundOut) {
  Diagnostics diagnostics;
  const run::PowerLog log = read_power_log("spl.txt",
                                           "Time,12-07-2024 23:12:12.830,Watts,1\n"
                                           "Time,13-07-2024 00:00:00.830,Watts,2\n",
                                           diagnostics);
  EXPECT_TRUE(log.day_first);
  EXPECT_NE(find(diagnostics, "mlperf.day_first"), nullptr);
  ASSERT_EQ(log.total.size(), 2U);
  EXPECT_EQ(log.total.time[0], Clock().read("07-12-2024 23:12:12.830"));
}

TEST(PowerLog, AnEmptyOneIsAnError) {
  Diagnostics diagnostics;
  read_power_log("spl.txt", "", diagnostics);
  EXPECT_NE(find(diagnostics, "mlperf.no_readings"), nullptr);
}

TEST(LoadGen, BrokenLinesAndTimes) {
  Diagnostics diagnostics;
  const run::LoadGenLog log =
      read_loadgen("detail",
                   ":::MLLOG {\"key\": \"power_begin\", \"value\": \"12.07.2024\"}\n"
                   ":::MLLOG {\"key\": \"result_validity\", \"value\": \"VAL\n"
                   ":::MLLOG nothing\n"
                   ":::MLLOG {\"key\": \"x\", \"metadata\": {\"is_error\": true}}\n",
                   diagnostics);
  EXPECT_FALSE(log.power_begin.has_value());
  EXPECT_NE(find(diagnostics, "mlperf.bad_time"), nullptr);
  ASSERT_NE(find(diagnostics, "mlperf.broken_line"), nullptr);
  EXPECT_EQ(find(diagnostics, "mlperf.broken_line")->count, 2U);
  EXPECT_EQ(log.errors, 1U);
}

TEST(Session, WhatIsNoJsonIsSaid) {
  for (const char* text : {"", "[]", "{\"a\": ", "nothing", "\"text\""}) {
    Diagnostics diagnostics;
    EXPECT_TRUE(read_session("client.json", text, diagnostics).file.empty()) << text;
    EXPECT_NE(find(diagnostics, "mlperf.no_json"), nullptr) << text;
  }
  Diagnostics diagnostics;
  EXPECT_EQ(
      read_session("client.json", "{\"results\": 3, \"phases\": [1], \"uuid\": 4}", diagnostics)
          .missing.size(),
      6U);
}

TEST(PtdLog, UncertaintyOfOneChannelAndOfSeveral) {
  Diagnostics diagnostics;
  const run::PtdLog log = read_ptd_log(
      "ptd",
      "07-12-2024 23:12:12.830: WARNING: Uncertainty 1.02%, which is above 1.00% limit for "
      "the last sample!\n"
      "07-12-2024 23:12:13.830: WARNING: Uncertainty 1.50%, which is above 1.00% limit for "
      "the last sample, logical channel 2!\n"
      "Time,07-12-2024 23:12:13.830,Watts,1\n"
      "ERROR: without a time\n",
      diagnostics);
  ASSERT_EQ(log.events.size(), 2U);
  EXPECT_NEAR(log.events[0].uncertainty.value(), 0.0102, 1e-12);
  EXPECT_FALSE(log.events[0].multichannel);
  EXPECT_NEAR(log.events[1].uncertainty.value(), 0.015, 1e-12);
  EXPECT_TRUE(log.events[1].multichannel);
  EXPECT_NE(find(diagnostics, "mlperf.untimed"), nullptr);
}

TEST(Training, WhatIsWrittenIsRead) {
  const Folder folder;
  run::Submission wanted = run::good_training();
  run::TrainingMeter the_switch;
  the_switch.series.name = "sw_0";
  the_switch.is_switch = true;
  the_switch.start = wanted.training->runs[0].start;
  the_switch.interconnect_watts = 250;
  wanted.training->runs[0].meters.push_back(the_switch);
  wanted.training->runs[1].meters[0].efficiency = 0.96;
  wanted.training->runs[2].meters[0].no_metadata = 1;
  write_submission(wanted, folder.path());
  const run::Submission got = read_only_one(folder.path());
  EXPECT_TRUE(got.diagnostics.empty()) << got.diagnostics.front().message;
  const run::Training &t = *got.training, &w = *wanted.training;
  EXPECT_EQ(t.scaling_factor, 1.25);
  ASSERT_EQ(t.runs.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(t.runs[k].name, w.runs[k].name);
    EXPECT_EQ(t.runs[k].status, "success");
    // Logs of training have milliseconds.
    EXPECT_EQ(*t.runs[k].start, *w.runs[k].start / 1'000'000 * 1'000'000);
    EXPECT_EQ(t.runs[k].samples, 3072);
    ASSERT_EQ(t.runs[k].meters.size(), w.runs[k].meters.size());
    EXPECT_EQ(t.runs[k].meters[0].series.size(), w.runs[k].meters[0].series.size());
    EXPECT_EQ(t.runs[k].meters[0].efficiency, w.runs[k].meters[0].efficiency);
  }
  EXPECT_TRUE(t.runs[0].meters[1].is_switch);
  EXPECT_EQ(t.runs[0].meters[1].interconnect_watts, 250);
  EXPECT_GT(t.runs[2].meters[0].no_metadata, 100U);
}

TEST(Training, ReadingsThatAreNone) {
  Diagnostics diagnostics;
  const run::TrainingMeter meter = read_training_power(
      "node_0.txt",
      ":::MLLOG {\"time_ms\": 1000, \"key\": \"power_reading\", \"value\": null}\n"
      ":::MLLOG {\"time_ms\": \"x\", \"key\": \"power_reading\", \"value\": 1}\n"
      "3: :::MLLOG {\"time_ms\": 2000, \"key\": \"power_reading\", \"value\": \"7\"}\n"
      ":::MLLOG {\"time_ms\": 3000, \"key\": \"power_reading\", \"value\": 8\n"
      "noise\n",
      diagnostics);
  EXPECT_EQ(meter.nulls, 1U);
  ASSERT_EQ(meter.series.size(), 2U);
  EXPECT_TRUE(std::isnan(meter.series.watts[0]));
  EXPECT_EQ(meter.series.watts[1], 7);
  ASSERT_NE(find(diagnostics, "mlperf.broken_line"), nullptr);
  EXPECT_EQ(find(diagnostics, "mlperf.broken_line")->count, 3U);
}

TEST(Training, ARunOfSeveralRanksSpansThemAll) {
  Diagnostics diagnostics;
  const run::TrainingRun run =
      read_training_result("result_0.txt",
                           "1: :::MLLOG {\"time_ms\": 2000, \"key\": \"run_start\"}\n"
                           "0: :::MLLOG {\"time_ms\": 1000, \"key\": \"run_start\"}\n"
                           "0: :::MLLOG {\"time_ms\": 9000, \"key\": \"run_stop\"}\n"
                           "1: :::MLLOG {\"time_ms\": 8000, \"key\": \"run_stop\"}\n",
                           diagnostics);
  EXPECT_EQ(run.start, 1'000'000'000);
  EXPECT_EQ(run.stop, 9'000'000'000);
  EXPECT_EQ(find(diagnostics, "mlperf.marker_again")->count, 2U);
}

TEST(Tiny, WhatIsWrittenIsRead) {
  const Folder folder;
  const run::Submission wanted = run::good_tiny();
  write_submission(wanted, folder.path());
  const run::Submission got = read_only_one(folder.path() / "energy");
  EXPECT_TRUE(got.diagnostics.empty()) << got.diagnostics.front().message;
  const run::Tiny &t = *got.tiny, &w = *wanted.tiny;
  EXPECT_EQ(t.rate, 1000);
  EXPECT_EQ(t.microjoules, w.microjoules);
  EXPECT_EQ(t.reported, 220);
  EXPECT_EQ(t.model, "kws01");
  EXPECT_EQ(t.millivolts, 1800);
  EXPECT_EQ(t.qualities, w.qualities);
  ASSERT_EQ(t.windows.size(), 5U);
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(t.windows[k].begin, w.windows[k].begin);
    EXPECT_EQ(t.windows[k].inferences, 100);
    EXPECT_EQ(t.windows[k].microjoules, 22000);
    EXPECT_EQ(t.windows[k].per_inference, 220);
  }
}

TEST(Tiny, TracesThatAreNone) {
  for (const std::string& bytes :
       {std::string(), std::string("\xf1\x00", 2), std::string("\xf0\x00\x00\x7a\x44", 5),
        std::string("\xf1\x00\x00\x00\x00", 5), std::string("\xf1\x00\x00\xc0\x7f", 5),
        std::string("\xf1\x00\x00\x7a\x44\x01", 6)}) {
    run::Tiny tiny;
    Diagnostics diagnostics;
    read_energy_trace("trace", bytes, tiny, diagnostics);
    EXPECT_NE(find(diagnostics, "mlperf.trace"), nullptr);
  }
}

// The releases' checksums, as compliance/sources_checksums.json of the tools has them.
TEST(Session, KnownSourcesAreAListOfReleases) {
  const Folder folder;
  const auto read = [&](const std::string& text) {
    put(folder.path() / "sources.json", text);
    return read_known_sources((folder.path() / "sources.json").string());
  };
  const auto releases =
      read(R"([{"client.py": "aa", "lib/common.py": "bb"}, {"client.py": "cc"}])");
  ASSERT_TRUE(releases) << releases.error().message;
  ASSERT_EQ(releases->size(), 2U);
  EXPECT_EQ(releases->at(0).at("lib/common.py"), "bb");
  EXPECT_EQ(releases->at(1).at("client.py"), "cc");
  for (const char* text : {"", "{", "[]", "{}", "[1, 2]", "{\"client.py\": \"aa\"}"}) {
    const auto none = read(text);
    ASSERT_FALSE(none) << text;
    EXPECT_THAT(none.error().message, HasSubstr("no list of releases"));
  }
}

// As EEMBC's runner says it, and as MLCommons' does.
TEST(Tiny, TheQualityInTheWordsOfBothRunners) {
  run::Tiny tiny;
  read_tiny_accuracy("00363.658 ulp-mlperf: Top-1: 90.2%\n00363.675 ulp-mlperf: AUC: 0.99\n", tiny);
  EXPECT_EQ(tiny.qualities["Top-1"], 90.2);
  EXPECT_EQ(tiny.qualities["AUC"], 0.99);
  read_tiny_accuracy("INFO Top 1% = 85.4\nINFO AUC = 0.862\n", tiny);
  EXPECT_EQ(tiny.qualities["Top-1"], 85.4);
  EXPECT_EQ(tiny.qualities["AUC"], 0.862);
}

TEST(Tree, FindsAllKindsInTheOrderOfTheirNames) {
  const Folder folder;
  write_submission(run::good_tiny(), folder.path() / "c");
  write_submission(run::good_training(), folder.path() / "b");
  write_submission(run::good_inference(), folder.path() / "a/deep/down");
  fs::create_directory_symlink(folder.path(), folder.path() / "again");
  const auto found = find_submissions(folder.path().string());
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[0].kind, run::SubmissionKind::inference);
  EXPECT_EQ((*found)[1].kind, run::SubmissionKind::training);
  EXPECT_EQ((*found)[2].kind, run::SubmissionKind::tiny);
}

TEST(Tree, NothingToFindIsBadInput) {
  const Folder folder;
  for (const fs::path& path : {folder.path(), folder.path() / "none"}) {
    const auto found = find_submissions(path.string());
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().code, ExitCode::bad_input);
  }
}

}  // namespace
}  // namespace joulediff::mlperf
