// Most lines say nothing that is asked for: a key is found by search, and only the lines that
// matter are parsed as JSON. Readings of power, of which there are millions, are found by search
// alone.
#include "import/mlperf/mllog.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "import/mlperf/text.h"

namespace joulediff::mlperf {
namespace {

using nlohmann::json;

// The object of the line; empty where the line is none of MLLOG.
std::string_view object_of(std::string_view line) {
  constexpr std::string_view kMark = ":::MLLOG";
  const std::size_t at = line.find(kMark);
  if (at == std::string_view::npos) return {};
  const std::size_t open = line.find('{', at + kMark.size());
  return open == std::string_view::npos ? std::string_view() : line.substr(open);
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_primitive() ? found->dump() : std::string();
}

std::optional<double> number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (found->is_string()) return number(found->get_ref<const std::string&>());
  if (!found->is_number()) return {};
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Milliseconds of unix time, of this century and the next: differences of two of them fit, too.
std::optional<Nanoseconds> from_milliseconds(double milliseconds) {
  if (!(milliseconds >= 0 && milliseconds < 7e12)) return {};
  return static_cast<Nanoseconds>(std::llround(milliseconds * 1e6));
}

json parsed(std::string_view text) {
  return json::parse(text, nullptr, false);
}

void set_time(std::optional<Nanoseconds>& target, const json& entry, const std::string& file,
              std::size_t line, Faults& faults) {
  // "07-12-2025 23:43:14.455", of which the day is swapped by nobody: LoadGen formats it itself.
  const std::string text = text_of(entry, "value");
  if (const auto time = Clock().read(text))
    target = *time;
  else
    faults.add(file, line, text);
}

void set_scenario_figure(run::LoadGenLog& log, std::string_view key, const json& entry) {
  const std::optional<double> value = number_of(entry, "value");
  if (key == "result_samples_per_second") log.samples_per_second = value;
  if (key == "result_completed_samples_per_sec") log.completed_per_second = value;
  if (key == "result_tokens_per_second" || key == "result_completed_tokens_per_second")
    log.tokens_per_second = value;
  if (key == "result_query_count") log.query_count = value;
  if (key == "effective_samples_per_query") log.samples_per_query = value;
  if (key == "effective_min_duration_ms") log.min_duration_ms = value;
  if (key == "early_stopping_latency_ss" || key == "early_stopping_latency_ms") {
    const bool multi = log.scenario == "MultiStream";
    if (multi == key.ends_with("_ms")) log.latency_ns = value;
  }
  if (key == "result_99.00_percentile_latency_ns" && log.scenario == "Server")
    log.latency_ns = value;
}

constexpr std::string_view kLoadGenKeys[] = {"effective_scenario",
                                             "effective_test_mode",
                                             "effective_samples_per_query",
                                             "effective_min_duration_ms",
                                             "sut_name",
                                             "power_begin",
                                             "power_end",
                                             "early_stopping_latency_ss",
                                             "early_stopping_latency_ms"};

bool wanted(std::string_view key) {
  if (key.starts_with("result_")) return true;
  for (const std::string_view one : kLoadGenKeys)
    if (key == one) return true;
  return false;
}

}  // namespace

run::LoadGenLog read_loadgen(const std::string& file, std::string_view detail,
                             Diagnostics& diagnostics) {
  run::LoadGenLog log;
  log.file = file;
  Faults broken(Severity::warning, "mlperf.broken_line"), times(Severity::error, "mlperf.bad_time");
  Lines lines(detail);
  for (std::string_view line; lines.next(line);) {
    const std::string_view object = object_of(line);
    if (object.empty()) {
      if (!line.empty() && line.find(":::MLLOG") != std::string_view::npos)
        broken.add(file, lines.number(), line);
      continue;
    }
    const auto key = json_field(object, "key");
    if (!key) {
      broken.add(file, lines.number(), line);
      continue;
    }
    if (object.find("\"is_error\": true") != std::string_view::npos) ++log.errors;
    if (!wanted(*key)) continue;
    const json entry = parsed(object);
    if (!entry.is_object()) {
      broken.add(file, lines.number(), line);
      continue;
    }
    if (*key == "power_begin") set_time(log.power_begin, entry, file, lines.number(), times);
    if (*key == "power_end") set_time(log.power_end, entry, file, lines.number(), times);
    if (*key == "effective_scenario") log.scenario = text_of(entry, "value");
    if (*key == "effective_test_mode") log.test_mode = text_of(entry, "value");
    if (*key == "sut_name") log.sut = text_of(entry, "value");
    if (*key == "result_validity") log.validity = text_of(entry, "value");
    set_scenario_figure(log, *key, entry);
  }
  broken.report(diagnostics, "the line is no JSON: it is left out");
  times.report(diagnostics, "the time is not MM-DD-YYYY HH:MM:SS.mmm");
  return log;
}

void read_summary(std::string_view text, run::LoadGenLog& log) {
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view name = line.substr(0, colon), value = line.substr(colon + 1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (name == "Scenario") log.summary_scenario = value;
    if (name == "Result is") log.summary_validity = value;
    if (name == "Samples per second" || name == "Completed samples per second")
      log.summary_rate = number(value).value_or(std::numeric_limits<double>::quiet_NaN());
  }
}

run::TrainingRun read_training_result(const std::string& file, std::string_view text,
                                      Diagnostics& diagnostics) {
  run::TrainingRun run;
  run.file = file;
  Faults broken(Severity::warning, "mlperf.broken_line"),
      again(Severity::warning, "mlperf.marker_again");
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    const std::string_view object = object_of(line);
    if (object.empty()) continue;
    const std::string_view key = json_field(object, "key").value_or("");
    if (key != "run_start" && key != "run_stop" && key != "eval_accuracy" && key != "eval_error" &&
        key != "submission_benchmark")
      continue;
    const json entry = parsed(object);
    const std::optional<double> milliseconds =
        entry.is_object() ? number_of(entry, "time_ms") : std::nullopt;
    const auto time = milliseconds ? from_milliseconds(*milliseconds) : std::nullopt;
    if (!time) {
      broken.add(file, lines.number(), line);
      continue;
    }
    const auto metadata = entry.find("metadata");
    const bool described = metadata != entry.end() && metadata->is_object();
    if (key == "submission_benchmark") run.benchmark = text_of(entry, "value");
    if (key == "run_start") {  // of several ranks, the first that starts and the last that stops
      if (run.start && *run.start != *time) again.add(file, lines.number(), line);
      run.start = run.start ? std::min(*run.start, *time) : *time;
    }
    if (key == "run_stop") {
      if (run.stop && *run.stop != *time) again.add(file, lines.number(), line);
      run.stop = run.stop ? std::max(*run.stop, *time) : *time;
      if (described) run.status = text_of(*metadata, "status");
    }
    if (key.starts_with("eval_")) {
      run.quality = number_of(entry, "value");
      if (described) run.samples = number_of(*metadata, "samples_count");
    }
  }
  broken.report(diagnostics, "the line has no time: it is left out");
  again.report(diagnostics, "the marker is there again: the run is the longest that they span");
  return run;
}

run::TrainingMeter read_training_power(const std::string& file, std::string_view text,
                                       Diagnostics& diagnostics) {
  run::TrainingMeter meter;
  Faults broken(Severity::warning, "mlperf.broken_line"),
      no_number(Severity::warning, "mlperf.no_number"),
      over_range(Severity::warning, "mlperf.over_range");
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    const std::string_view object = object_of(line);
    if (object.empty()) {
      if (!line.empty()) broken.add(file, lines.number(), line);
      continue;
    }
    const auto key = json_field(object, "key");
    const auto milliseconds = json_field(object, "time_ms");
    const std::optional<double> when = milliseconds ? number(*milliseconds) : std::nullopt;
    const auto time = when ? from_milliseconds(*when) : std::nullopt;
    if (!key || !time || !object.ends_with('}')) {
      broken.add(file, lines.number(), line);
      continue;
    }
    if (object.find("\"metadata\": \"\"") != std::string_view::npos ||
        object.find("\"metadata\":\"\"") != std::string_view::npos)
      ++meter.no_metadata;
    else if (meter.host.empty())
      meter.host = std::string(json_field(object, "host").value_or(""));
    const std::string_view value = json_field(object, "value").value_or("");
    const std::optional<double> figure = number(value);
    if (*key == "power_reading") {
      if (!figure) {
        ++meter.nulls;
        no_number.add(file, lines.number(), value.empty() ? "no value" : value);
      }
      if (figure && std::abs(*figure) >= kOverRange) over_range.add(file, lines.number(), value);
      meter.series.time.push_back(*time);
      meter.series.watts.push_back(figure.value_or(std::numeric_limits<double>::quiet_NaN()));
    } else if (*key == "power_measurement_start") {
      meter.start = *time;
    } else if (*key == "power_measurement_stop") {
      meter.stop = *time;
    } else if (*key == "conversion_eff") {
      meter.efficiency = figure;
      if (!figure) no_number.add(file, lines.number(), line);
    } else if (key->starts_with("interconnect_power")) {
      meter.interconnect_watts = figure;
      if (!figure) no_number.add(file, lines.number(), line);
    }
  }
  broken.report(diagnostics, "the line is no record of a reading: it is left out");
  no_number.report(diagnostics, "the value is no number: no power is known then");
  over_range.report(diagnostics, kNoReading);
  return meter;
}

}  // namespace joulediff::mlperf
