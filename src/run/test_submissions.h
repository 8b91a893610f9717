// Submissions as importers make them, small and without a fault; a test spoils what it is about.
#pragma once

#include <cmath>

#include <fmt/format.h>

#include "run/submission.h"

namespace joulediff::run {

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kTestingBegin = 1'720'825'977LL * kSecond + 304'000'000;  // 2024-07-12, UTC

// `count` readings, one a second, from `begin` on: 100 W and a ripple, 40 W outside of the load.
inline PowerSeries readings(Nanoseconds begin, std::size_t count, Nanoseconds from,
                            Nanoseconds to) {
  PowerSeries series;
  for (std::size_t i = 0; i < count; ++i) {
    const Nanoseconds time = begin + static_cast<Nanoseconds>(i) * kSecond;
    const bool load = time >= from && time <= to;
    series.time.push_back(time);
    series.watts.push_back(load ? 100 + 0.5 * std::sin(static_cast<double>(i)) : 40);
    series.amps.push_back(load ? 0.5F : 0.2F);
    series.power_factor.push_back(0.9F);
  }
  return series;
}

inline InferencePart part(const std::string& name, Nanoseconds begin) {
  InferencePart part;
  const Nanoseconds end = begin + 610 * kSecond;
  part.loadgen.file = name + "/mlperf_log_detail.txt";
  part.loadgen.scenario = part.loadgen.summary_scenario = "Offline";
  part.loadgen.validity = part.loadgen.summary_validity = "VALID";
  part.loadgen.test_mode = "PerformanceOnly";
  part.loadgen.sut = "a system";
  part.loadgen.power_begin = begin;
  part.loadgen.power_end = end;
  part.loadgen.samples_per_second = part.loadgen.summary_rate = 1000;
  part.loadgen.query_count = 1;
  part.loadgen.samples_per_query = 610000;
  part.loadgen.min_duration_ms = 600000;
  part.power.file = name + "/spl.txt";
  // Whole seconds: PTDaemon's times have milliseconds, and they fall between the markers.
  part.power.total = readings(begin - 10 * kSecond + 196'000'000, 630, begin, end);
  return part;
}

inline Submission good_inference() {
  Submission s;
  s.path = "bert";
  s.submitter = "Somebody";
  s.system = "box";
  s.benchmark = "bert-99";
  s.scenario = "Offline";
  s.round = "v4.1";
  Inference i;
  const Nanoseconds ranging = kTestingBegin - 800 * kSecond;
  i.ranging = part("ranging", ranging);
  i.testing = part("run_1", kTestingBegin);
  for (Session* session : {&i.client, &i.server}) {
    const bool server = session == &i.server;
    session->file = server ? "power/server.json" : "power/client.json";
    session->name = "2024-07-12_15-58-55";
    session->client_uuid = "11111111-1111-1111-1111-111111111111";
    session->server_uuid = "22222222-2222-2222-2222-222222222222";
    session->timezone = 0;
    session->sources = {{"client.py", "aa"}, {"lib/common.py", "bb"}};
    session->messages = {{"mlcommons/power client v3", "mlcommons/power server v3"},
                         {"time", server ? "1720825135.1" : "1720825135.2"},
                         {"session,2024-07-12_15-58-55,start,testing", "OK"}};
    for (const auto& [mode, begin] :
         {std::pair("ranging", ranging), std::pair("testing", kTestingBegin)}) {
      const double t = static_cast<double>(begin) * 1e-9 + (server ? 0.001 : 0);
      session->phases[mode] = {{t - 40, 1}, {t - 20, 21}, {t + 620, 661}, {t + 630, 671}};
    }
  }
  i.server.ptd_messages = {
      {"Hello", "Hello, PTDaemon here!"},
      {"Identify",
       "YokogawaWT330,1000,1,1,1,1,0,0,1,version=1.10.0-ed9a21d2-20220817,OS=Linux,"
       "mode=power,1,1,1,0,0,cal_date=2024-01-05,YOKOGAWA;WT333E;SERIAL1;F1.04"},
      {"RR", "Ranges,0,0.500000,1,300.000000"},
      {"SR,V,Auto", "Range V changed"},
      {"SR,A,Auto", "Range A changed"},
      {"Go,1000,0,2024-07-12_15-58-55_ranging",
       "Starting untimed measurement, maximum 500000 samples at 1000ms with 0 rampup samples"},
      {"Stop", "Stopping untimed measurement"},
      {"SR,V,240.0", "Range V changed"},
      {"SR,A,0.55", "Range A changed"},
      {"Go,1000,0,2024-07-12_15-58-55_testing",
       "Starting untimed measurement, maximum 500000 samples at 1000ms with 0 rampup samples"},
      {"Stop", "Stopping untimed measurement"},
      {"Uncertainty", "Uncertainty,0.002300,0.002167,0.003368,630,0,630,0"},
      {"SR,V,Auto", "Range V changed"},
      {"SR,A,0.500000", "Range A changed"}};
  i.server.analyzers.push_back({52, {1}, {"ptd", "-c", "1", "52"}});
  i.ptd.file = "power/ptd_logs.txt";
  i.ptd.uncertainty_activated = ranging - 60 * kSecond;
  i.ptd.ranging_begin = ranging - 12 * kSecond;
  i.ptd.ranging_end = ranging + 622 * kSecond;
  i.ptd.testing_begin = kTestingBegin - 12 * kSecond;
  i.ptd.texts = {"Can't evaluate uncertainty of this sample!"};
  i.ptd.events = {{ranging, Severity::error, 0, {}, false}};
  for (const char* file :
       {"power/client.log", "power/ptd_logs.txt", "power/server.log",
        "ranging/mlperf_log_detail.txt", "ranging/mlperf_log_summary.txt", "ranging/spl.txt",
        "run_1/mlperf_log_detail.txt", "run_1/mlperf_log_summary.txt", "run_1/spl.txt"}) {
    i.files[file] = fmt::format("hash of {}", file);
    const std::string name = file;
    const bool by_server =
        name.ends_with("spl.txt") || name.ends_with("ptd_logs.txt") || name.ends_with("server.log");
    (by_server ? i.server : i.client).results[file] = i.files[file];
  }
  i.analyzer_table = i.power_settings = true;
  i.accuracy = "{\"exact_match\": 83.9, \"f1\": 90.97}\nReading examples...\n";
  s.description = {{"submitter", "Somebody"}, {"system_name", "box"}};
  for (const char* field :
       {"power_management", "filesystem", "boot_firmware_version", "management_firmware_version",
        "other_hardware", "number_of_type_nics_installed", "nics_enabled_firmware",
        "nics_enabled_os", "nics_enabled_connected", "network_speed_mbit",
        "power_supply_quantity_and_rating_watts", "power_supply_details", "disk_drives",
        "disk_controllers", "system_power_only"})
    s.description[field] = "stated";
  s.inference = std::move(i);
  return s;
}

// Three runs on one node, a reading each second from 60 s before to 60 s after.
inline Submission good_training() {
  Submission s;
  s.kind = SubmissionKind::training;
  s.path = "lora";
  s.benchmark = "llama2_70b_lora";
  s.system = "box";
  Training t;
  for (int k = 0; k < 3; ++k) {
    TrainingRun run;
    run.name = fmt::format("result_{}", k);
    run.file = run.name + ".txt";
    run.benchmark = s.benchmark;
    run.status = "success";
    run.start = kTestingBegin + k * 2000 * kSecond;
    run.stop = *run.start + (600 + k) * kSecond;
    run.quality = 0.9249;
    run.samples = 3072;
    run.power_folder = true;
    TrainingMeter meter;
    meter.series = readings(*run.start - 60 * kSecond, static_cast<std::size_t>(721 + k),
                            *run.start, *run.stop);
    meter.series.amps.clear();
    meter.series.power_factor.clear();
    meter.series.name = "node_0";
    meter.start = meter.series.time.front() - kSecond;
    meter.stop = meter.series.time.back();
    meter.host = "0";
    run.meters.push_back(std::move(meter));
    t.runs.push_back(std::move(run));
  }
  t.scaling_factor = 1.25;
  s.training = std::move(t);
  return s;
}

// Five windows of 11 s at 1 kHz, 2 uJ a sample, 100 inferences in each.
inline Submission good_tiny() {
  Submission s;
  s.kind = SubmissionKind::tiny;
  s.path = "kws";
  s.benchmark = "kws";
  s.scenario = "SingleStream";
  Tiny t;
  t.rate = 1000;
  t.model = "kws01";
  t.microjoules.assign(75'000, 2.0F);
  for (int k = 0; k < 5; ++k)
    t.windows.push_back({2.0 + 14.5 * k, 13.0 + 14.5 * k, 22000.0, 220.0, 100.0});
  t.reported = 220;
  t.millivolts = 1800;
  t.qualities = {{"Top-1", 90.2}, {"AUC", 0.99}};
  s.tiny = std::move(t);
  return s;
}

}  // namespace joulediff::run
