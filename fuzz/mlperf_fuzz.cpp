// Any bytes as the files of MLPerf submissions. The first byte chooses the kind; a line "%%" ends
// one file and begins the next. What is read is judged, too: no figure may crash a rule, and what a
// report prints must be a line of text.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "import/mlperf/mllog.h"
#include "import/mlperf/power_log.h"
#include "import/mlperf/session.h"
#include "import/mlperf/text.h"
#include "import/mlperf/tiny.h"
#include "rules/mlperf.h"

namespace mlperf = joulediff::mlperf;
namespace run = joulediff::run;
namespace rules = joulediff::rules;

namespace {

void expect(bool condition) {
  if (!condition) std::abort();
}

std::vector<std::string_view> files_of(std::string_view bytes) {
  std::vector<std::string_view> files;
  constexpr std::string_view kEnd = "\n%%\n";
  for (std::size_t at = bytes.find(kEnd); at != std::string_view::npos; at = bytes.find(kEnd)) {
    files.push_back(bytes.substr(0, at + 1));
    bytes.remove_prefix(at + kEnd.size());
  }
  files.push_back(bytes);
  files.resize(8);
  return files;
}

void check_log(const run::PowerSeries& series) {
  expect(series.time.size() == series.watts.size());
  expect(series.amps.empty() || series.amps.size() == series.time.size());
  expect(series.power_factor.empty() || series.power_factor.size() == series.time.size());
}

void read_inference(const std::vector<std::string_view>& files, run::Submission& s) {
  run::Inference i;
  i.testing.loadgen = mlperf::read_loadgen("detail", files[0], s.diagnostics);
  i.ranging.loadgen = i.testing.loadgen;
  i.testing.power = mlperf::read_power_log("spl", files[1], s.diagnostics);
  i.ranging.power = mlperf::read_power_log("spl", files[2], s.diagnostics);
  i.client = mlperf::read_session("client", files[3], s.diagnostics);
  i.server = mlperf::read_session("server", files[4], s.diagnostics);
  i.ptd = mlperf::read_ptd_log("ptd", files[5], s.diagnostics);
  mlperf::read_summary(files[6], i.testing.loadgen);
  i.accuracy = std::string(files[6]);
  s.benchmark = "bert-99";
  s.description = mlperf::read_description("system", files[7], s.diagnostics);
  check_log(i.testing.power.total);
  for (const run::PowerSeries& analyzer : i.testing.power.analyzers) check_log(analyzer);
  for (const run::PtdEvent& event : i.ptd.events) expect(event.text < i.ptd.texts.size());
  s.inference = std::move(i);
}

void read_training(const std::vector<std::string_view>& files, run::Submission& s) {
  run::Training t;
  run::TrainingRun one = mlperf::read_training_result("result_0", files[0], s.diagnostics);
  one.name = "result_0";
  one.power_folder = true;
  for (std::size_t k = 1; k < 5; ++k) {
    one.meters.push_back(mlperf::read_training_power("node", files[k], s.diagnostics));
    one.meters.back().is_switch = k > 2;
    check_log(one.meters.back().series);
  }
  t.runs.assign(3, one);
  t.scaling_factor = mlperf::read_scaling("scaling", files[5], s.diagnostics);
  s.training = std::move(t);
}

void read_tiny(const std::vector<std::string_view>& files, run::Submission& s) {
  run::Tiny t;
  mlperf::read_energy_trace("trace", files[0], t, s.diagnostics);
  mlperf::read_windows("marks", files[1], t, s.diagnostics);
  mlperf::read_tiny_results("results", files[2], t, s.diagnostics);
  mlperf::read_tiny_log(files[3], t);
  mlperf::read_tiny_accuracy(files[4], t);
  s.tiny = std::move(t);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string_view> files = files_of(bytes);
  run::Submission s;
  s.kind = static_cast<run::SubmissionKind>(data[0] % 3);
  if (s.kind == run::SubmissionKind::inference) read_inference(files, s);
  if (s.kind == run::SubmissionKind::training) read_training(files, s);
  if (s.kind == run::SubmissionKind::tiny) read_tiny(files, s);
  for (const joulediff::Diagnostic& one : s.diagnostics) {
    expect(!one.message.empty() && one.message.find('\n') == std::string::npos);
  }
  const rules::MlperfJudgement judgement = rules::judge(s);
  expect(!judgement.checks.empty());
  return 0;
}
