// One MLPerf power submission as its files have it: what import reads, rules judge and report
// prints. Nothing in here is computed from anything else in here. What a file does not say is an
// empty optional, never 0; what a file says wrongly is a diagnostic of the submission.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/units.h"

namespace joulediff::run {

// Readings of one meter by its own clock. Times are unix time, in the order of the file.
struct PowerSeries {
  std::string name;  // "", "analyzer 2", "node_0", "sw_1"
  std::vector<Nanoseconds> time;
  std::vector<double> watts;        // as written, negative ones too; NaN: written, but no number
  std::vector<float> amps;          // empty, or as long as time
  std::vector<float> power_factor;  // empty, or as long as time
  std::size_t size() const { return time.size(); }
};

// spl.txt of PTDaemon: the summed column, and each analyzer by its own clock where there are
// several.
struct PowerLog {
  std::string file;  // empty: there is none
  PowerSeries total;
  std::vector<PowerSeries> analyzers;
  std::size_t channels = 0;  // of a multichannel meter
  double channel_error = 0;  // largest |sum of channels - total| in watts
  bool day_first = false;    // dates are DD-MM-YYYY
};

// mlperf_log_detail.txt, and mlperf_log_summary.txt beside it.
struct LoadGenLog {
  std::string file;
  std::string scenario;  // "Offline", "Server", "SingleStream", ...
  std::string validity;  // "VALID"
  std::string test_mode;
  std::string sut;
  std::optional<Nanoseconds> power_begin;
  std::optional<Nanoseconds> power_end;
  std::optional<double> samples_per_second;    // offline
  std::optional<double> completed_per_second;  // server
  std::optional<double> tokens_per_second;
  std::optional<double> query_count;
  std::optional<double> samples_per_query;
  std::optional<double> min_duration_ms;
  std::optional<double> latency_ns;  // the percentile that the scenario is judged by
  std::uint64_t errors = 0;          // lines that LoadGen marked as errors
  std::string summary_scenario;      // what the summary says; empty: there is none
  std::string summary_validity;
  std::optional<double> summary_rate;
};

struct Instant {
  double unix_time = 0;
  double monotonic = 0;
};
struct Message {
  std::string command;
  std::string reply;
};

// client.json or server.json.
struct Session {
  std::string file;  // empty: there is none
  std::string name;
  std::string client_uuid;
  std::string server_uuid;
  std::optional<double> timezone;              // seconds west of UTC
  std::map<std::string, std::string> sources;  // SHA-1 of each file of the tool
  std::map<std::string, std::string> results;  // SHA-1 of each file of the session
  std::map<std::string, std::vector<Instant>> phases;
  std::vector<Message> messages;
  std::vector<Message> ptd_messages;
  struct Analyzer {
    std::optional<int> device;
    std::vector<int> channels;
    std::vector<std::string> command;
  };
  std::vector<Analyzer> analyzers;  // ptd_config
  bool debug = false;
  std::vector<std::string> missing;  // required keys that are not there
};

// ptd_logs.txt: what the daemon complained of, in order.
struct PtdEvent {
  Nanoseconds time = 0;
  Severity severity = Severity::warning;
  std::uint32_t text = 0;               // in PtdLog::texts
  std::optional<double> uncertainty{};  // relative, of "Uncertainty 1.02%, which is above ..."
  bool multichannel = false;            // "... logical channel 2!"
};
struct PtdLog {
  std::string file;
  std::vector<PtdEvent> events;
  std::vector<std::string> texts;  // with N for each number
  std::optional<Nanoseconds> uncertainty_activated;
  std::optional<Nanoseconds> ranging_begin;  // "Go with mark '..._ranging'"
  std::optional<Nanoseconds> ranging_end;    // the first "Completed test" after it
  std::optional<Nanoseconds> testing_begin;
};

struct InferencePart {
  LoadGenLog loadgen;
  PowerLog power;
};
struct Inference {
  InferencePart ranging;
  InferencePart testing;
  Session client;
  Session server;
  PtdLog ptd;
  std::map<std::string, std::string> files;  // SHA-1 of the files that are there
  bool analyzer_table = false;
  bool power_settings = false;
  std::optional<std::string> accuracy;  // of accuracy.txt
};

// One run of training: result_i.txt and power/result_i/{node_j,sw_k}.txt.
struct TrainingMeter {
  PowerSeries series;
  std::optional<Nanoseconds> start;  // power_measurement_start
  std::optional<Nanoseconds> stop;
  std::optional<double> efficiency;          // conversion_eff
  std::optional<double> interconnect_watts;  // interconnect_power_est
  bool is_switch = false;
  std::string host;               // of the metadata
  std::uint64_t nulls = 0;        // readings of which the value is no number
  std::uint64_t no_metadata = 0;  // lines of which the metadata is a string
};
struct TrainingRun {
  std::string name;  // "result_0"
  std::string file;
  std::string benchmark;
  std::string status;  // "success"
  std::optional<Nanoseconds> start;
  std::optional<Nanoseconds> stop;
  std::optional<double> quality;  // the value of the last evaluation
  std::optional<double> samples;  // that it had been trained on
  std::vector<TrainingMeter> meters;
  bool power_folder = false;
};
struct Training {
  std::vector<TrainingRun> runs;         // in the order of their names
  std::optional<double> scaling_factor;  // of scaling.json
};

// EEMBC: energy of each sample, and the instants of the pin that marks the windows.
struct TinyWindow {
  double begin = 0;  // seconds into the trace
  double end = 0;
  std::optional<double> microjoules;  // what the runner printed
  std::optional<double> per_inference;
  std::optional<double> inferences;
};
struct Tiny {
  std::optional<double> rate;      // samples a second
  std::vector<float> microjoules;  // of each sample
  std::vector<TinyWindow> windows;
  std::optional<double> reported;  // median, uJ an inference
  std::string model;
  std::optional<double> millivolts;
  std::map<std::string, double> qualities;  // "Top-1" in percent, "AUC"
};

enum class SubmissionKind : std::uint8_t { inference, training, tiny };

struct Submission {
  SubmissionKind kind = SubmissionKind::inference;
  std::string path;
  std::string submitter;  // as the folder or the system's description has them; empty: unknown
  std::string system;
  std::string benchmark;
  std::string scenario;
  std::string round;                               // "v4.1"
  std::map<std::string, std::string> description;  // systems/ID.json
  std::optional<Inference> inference;
  std::optional<Training> training;
  std::optional<Tiny> tiny;
  Diagnostics diagnostics;
};

}  // namespace joulediff::run
