// A submission written as the tools would have left it, so that tests can read it, whole or
// spoiled.
#pragma once

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "import/mlperf/files.h"
#include "run/test_submissions.h"

namespace joulediff::mlperf {

namespace fs = std::filesystem;

inline void put(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string clock_text(Nanoseconds time) {
  const std::time_t seconds = static_cast<std::time_t>(time / 1'000'000'000);
  return fmt::format("{:%m-%d-%Y %H:%M:%S}.{:03}", fmt::gmtime(seconds),
                     time % 1'000'000'000 / 1'000'000);
}

inline std::string spl_text(const run::PowerLog& log) {
  std::string out;
  const auto values = [](const run::PowerSeries& s, std::size_t i) {
    return fmt::format("Time,{},Watts,{:.6f},Volts,240.000000,Amps,{:.6f},PF,{:.6f}",
                       clock_text(s.time[i]), s.watts[i], s.amps[i], s.power_factor[i]);
  };
  for (std::size_t i = 0; i < log.total.size(); ++i) {
    out += values(log.total, i) + ",Mark,session_testing";
    for (std::size_t c = 0; c < log.channels; ++c)
      out += fmt::format(",Ch{},Watts,{:.6f},Volts,240.0,Amps,0.1,PF,0.9", c + 1,
                         log.total.watts[i] / static_cast<double>(log.channels));
    for (std::size_t a = 0; a < log.analyzers.size(); ++a)
      out += fmt::format(",Analyzer{},{}", a + 1, values(log.analyzers[a], i));
    out += '\n';
  }
  return out;
}

inline std::string detail_text(const run::LoadGenLog& log) {
  std::string out;
  const auto line = [&out](std::string_view key, const std::string& value) {
    out += fmt::format(
        ":::MLLOG {{\"key\": \"{}\", \"value\": {}, \"time_ms\": 1.5, \"metadata\": "
        "{{\"is_error\": false}}}}\n",
        key, value);
  };
  const auto text = [&](std::string_view key, const std::string& value) {
    line(key, fmt::format("\"{}\"", value));
  };
  text("loadgen_git_log_message", "a \\\"key\\\": of no matter");
  text("sut_name", log.sut);
  text("effective_scenario", log.scenario);
  text("effective_test_mode", log.test_mode);
  if (log.samples_per_query)
    line("effective_samples_per_query", fmt::format("{}", *log.samples_per_query));
  if (log.min_duration_ms)
    line("effective_min_duration_ms", fmt::format("{}", *log.min_duration_ms));
  if (log.power_begin) text("power_begin", clock_text(*log.power_begin));
  if (log.power_end) text("power_end", clock_text(*log.power_end));
  text("result_validity", log.validity);
  if (log.query_count) line("result_query_count", fmt::format("{}", *log.query_count));
  if (log.samples_per_second)
    line("result_samples_per_second", fmt::format("{}", *log.samples_per_second));
  return out;
}

inline std::string summary_text(const run::LoadGenLog& log) {
  return fmt::format(
      "SUT name : {}\nScenario : {}\nMode     : {}\nSamples per second: {}\n"
      "Result is : {}\n",
      log.sut, log.summary_scenario, log.test_mode, log.summary_rate.value_or(0),
      log.summary_validity);
}

inline std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

inline std::string map_text(const std::map<std::string, std::string>& map) {
  std::string out;
  for (const auto& [key, value] : map)
    out += fmt::format("{}\"{}\": \"{}\"", out.empty() ? "" : ", ", key, escaped(value));
  return "{" + out + "}";
}

inline std::string session_text(const run::Session& s) {
  const auto messages = [](const std::vector<run::Message>& list) {
    std::string out;
    for (const run::Message& m : list)
      out += fmt::format("{}{{\"cmd\": \"{}\", \"reply\": \"{}\"}}", out.empty() ? "" : ", ",
                         escaped(m.command), escaped(m.reply));
    return "[" + out + "]";
  };
  std::string phases, config;
  for (const auto& [mode, instants] : s.phases) {
    std::string list;
    for (const run::Instant& one : instants)
      list +=
          fmt::format("{}[{:.6f}, {:.6f}]", list.empty() ? "" : ", ", one.unix_time, one.monotonic);
    phases += fmt::format("{}\"{}\": [{}]", phases.empty() ? "" : ", ", mode, list);
  }
  for (const auto& analyzer : s.analyzers)
    config = fmt::format("{{\"device_type\": {}, \"channel\": [{}], \"command\": [\"ptd\"]}}",
                         analyzer.device.value_or(0), fmt::join(analyzer.channels, ", "));
  return fmt::format(
      "{{\"version\": \"1.0\", \"timezone\": {}, \"modules\": {{}}, \"sources\": "
      "{},\n\"messages\": "
      "{},\n\"uuid\": {{\"client\": \"{}\", \"server\": \"{}\"}}, \"session_name\": \"{}\",\n"
      "\"results\": {},\n\"phases\": {{{}}}, \"debug\": {}{}{}}}\n",
      s.timezone.value_or(0), map_text(s.sources), messages(s.messages), s.client_uuid,
      s.server_uuid, s.name, map_text(s.results), phases, s.debug,
      s.ptd_messages.empty() ? "" : ",\n\"ptd_messages\": " + messages(s.ptd_messages),
      config.empty() ? "" : ", \"ptd_config\": " + config);
}

inline std::string ptd_text(const run::PtdLog& log) {
  std::multimap<Nanoseconds, std::string> lines;
  const auto add = [&](const std::optional<Nanoseconds>& time, const std::string& text) {
    if (time) lines.emplace(*time, text);
  };
  add(log.uncertainty_activated, "Uncertainty checking for YokogawaWT330 is activated");
  add(log.ranging_begin, "Go with mark 'session_ranging'");
  add(log.ranging_end, "Completed test");
  add(log.testing_begin, "Go with mark 'session_testing'");
  for (const run::PtdEvent& event : log.events) {
    std::string text = log.texts[event.text];
    if (event.uncertainty)
      text = fmt::format("Uncertainty {:.2f}%, which is above 1.00% limit for the last sample{}!",
                         *event.uncertainty * 100, event.multichannel ? ", logical channel 2" : "");
    add(event.time, (event.severity == Severity::error ? "ERROR: " : "WARNING: ") + text);
  }
  std::string out = "Selected power meter 'Yokogawa WT330'\n";
  for (const auto& [time, text] : lines) out += fmt::format("{}: {}\n", clock_text(time), text);
  return out;
}

inline void write_inference(run::Submission s, const fs::path& folder) {
  run::Inference& i = *s.inference;
  const fs::path performance = folder / "performance";
  std::map<std::string, std::string> texts{{"power/client.log", "client\n"},
                                           {"power/server.log", "server\n"},
                                           {"power/ptd_logs.txt", ptd_text(i.ptd)}};
  for (const auto& [name, part] :
       {std::pair("ranging", &i.ranging), std::pair("run_1", &i.testing)}) {
    texts[fmt::format("{}/mlperf_log_detail.txt", name)] = detail_text(part->loadgen);
    texts[fmt::format("{}/mlperf_log_summary.txt", name)] = summary_text(part->loadgen);
    texts[fmt::format("{}/spl.txt", name)] = spl_text(part->power);
  }
  for (const auto& [name, text] : texts) {
    if (!i.files.contains(name)) continue;
    put(performance / name, text);
    // What was told rightly of the file is told rightly of what it is now.
    for (run::Session* session : {&i.client, &i.server})
      if (const auto listed = session->results.find(name);
          listed != session->results.end() && listed->second == i.files[name])
        listed->second = sha1(text);
  }
  if (!i.client.file.empty()) put(performance / "power/client.json", session_text(i.client));
  if (!i.server.file.empty()) put(performance / "power/server.json", session_text(i.server));
  if (i.analyzer_table) put(folder / "analyzer_table.csv", "vendor,model\n");
  if (i.accuracy) put(folder / "accuracy/accuracy.txt", *i.accuracy);
  if (i.power_settings) put(folder / "power_settings.md", "none\n");
  if (!s.description.empty()) put(folder / "system.json", map_text(s.description));
}

inline std::string mllog(Nanoseconds time, std::string_view key, const std::string& value,
                         const std::string& metadata) {
  return fmt::format(
      ":::MLLOG {{\"namespace\": \"\", \"time_ms\": {}, \"event_type\": "
      "\"POINT_IN_TIME\", \"key\": \"{}\", \"value\": {}, \"metadata\": {}}}\n",
      time / 1'000'000, key, value, metadata);
}

inline std::string node_text(const run::TrainingMeter& m) {
  std::string out;
  const std::string metadata =
      m.no_metadata > 0 ? "\"\"" : fmt::format("{{\"host\": \"{}\"}}", m.host);
  if (m.start) out += mllog(*m.start, "power_measurement_start", "\"null\"", metadata);
  if (m.efficiency)
    out += mllog(m.start.value_or(0), "conversion_eff", fmt::format("{}", *m.efficiency), metadata);
  if (m.interconnect_watts)
    out += mllog(m.start.value_or(0), "interconnect_power_est",
                 fmt::format("{}", *m.interconnect_watts), metadata);
  for (std::size_t i = 0; i < m.series.size(); ++i)
    out += mllog(m.series.time[i], "power_reading",
                 std::isnan(m.series.watts[i]) ? "null" : fmt::format("{}", m.series.watts[i]),
                 metadata);
  if (m.stop) out += mllog(*m.stop, "power_measurement_stop", "\"null\"", metadata);
  return out;
}

inline void write_training(const run::Submission& s, const fs::path& folder) {
  for (const run::TrainingRun& run : s.training->runs) {
    std::string text = "+ srun something\n 0: not a record\n";
    text += "0: " + mllog(0, "submission_benchmark", "\"" + run.benchmark + "\"", "{}");
    if (run.start) text += "0: " + mllog(*run.start, "run_start", "null", "{}");
    if (run.quality)
      text += "0: " + mllog(run.stop.value_or(0), "eval_accuracy", fmt::format("{}", *run.quality),
                            fmt::format("{{\"samples_count\": {}}}", run.samples.value_or(0)));
    if (run.stop)
      text += "0: " + mllog(*run.stop, "run_stop", "null", "{\"status\": \"" + run.status + "\"}");
    put(folder / run.file, text);
    for (const run::TrainingMeter& meter : run.meters)
      put(folder / "power" / run.name / (meter.series.name + ".txt"), node_text(meter));
  }
  if (s.training->scaling_factor)
    put(folder / "scaling.json",
        fmt::format("{{\"scaling_factor\": {}}}", *s.training->scaling_factor));
}

inline void write_tiny(const run::Submission& s, const fs::path& folder) {
  const run::Tiny& t = *s.tiny;
  std::string bytes(5, '\xf1');
  const auto rate = static_cast<float>(t.rate.value_or(0));
  std::memcpy(bytes.data() + 1, &rate, 4);
  const std::size_t at = bytes.size();
  bytes.resize(at + 4 * t.microjoules.size());
  std::memcpy(bytes.data() + at, t.microjoules.data(), 4 * t.microjoules.size());
  put(folder / "energy/trace1-energy.bin", bytes);
  std::string marks = "[\n\t0.019", results;
  for (std::size_t k = 0; k < t.windows.size(); ++k) {
    const run::TinyWindow& w = t.windows[k];
    marks += fmt::format(",\n\t{},\n\t{}", w.begin, w.end);
    results += fmt::format(
        "00245.273 ulp-ml: Energy data for window {} at time {:.2f} for {:.2f} "
        "sec.:\n00245.273 ulp-ml:   Energy       : {:.3f} uJ\n00245.273 ulp-ml:"
        "   Energy/Inf.  : {:.3f} uJ/inf.\n",
        2 * k + 2, w.begin, w.end - w.begin, w.microjoules.value_or(0),
        w.per_inference.value_or(0));
  }
  if (t.reported)
    results += fmt::format("00245.291 ulp-ml: Median energy cost is {:.3f} uJ/inf.\n", *t.reported);
  for (std::size_t k = 0; k < t.windows.size(); ++k)
    results += fmt::format(
        "00245.292 ulp-ml: Performance results for window {}:\n"
        "00245.292 ulp-ml:   # Inferences : {:>12}\n",
        2 * k + 2, t.windows[k].inferences.value_or(0));
  put(folder / "energy/trace1-timestamps.json", marks + "\n]");
  put(folder / "energy/results.txt", results);
  put(folder / "energy/log.txt",
      fmt::format("00168.470 io: [dut]: m-model-[{}]\n00245.233 emon: m-voltage-mv[{}]\n", t.model,
                  t.millivolts.value_or(0)));
  std::string accuracy;
  for (const auto& [metric, value] : t.qualities)
    accuracy += fmt::format("00363.658 ulp-mlperf: {}: {}{}\n", metric, value,
                            metric == "Top-1" ? "%" : "");
  put(folder / "accuracy/results.txt", accuracy);
}

inline void write_submission(const run::Submission& s, const fs::path& folder) {
  if (s.inference) write_inference(s, folder);
  if (s.training) write_training(s, folder);
  if (s.tiny) write_tiny(s, folder);
}

}  // namespace joulediff::mlperf
