// Folders are known by what they hold, not by their names: published trees, copies of one
// submission and a session fresh from the tools all differ in how they are called.
#include "import/mlperf/tree.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/format.h"
#include "import/mlperf/files.h"
#include "import/mlperf/mllog.h"
#include "import/mlperf/power_log.h"
#include "import/mlperf/session.h"
#include "import/mlperf/tiny.h"

namespace joulediff::mlperf {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxDepth = 16;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

bool has_prefixed(const fs::path& folder, std::string_view prefix) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    if (entry->path().filename().string().starts_with(prefix)) return true;
  return false;
}

std::optional<run::SubmissionKind> kind_of(const fs::path& folder) {
  const bool session = is_there(folder / "power" / "client.json") ||
                       is_there(folder / "power" / "server.json") ||
                       is_there(folder / "power" / "ptd_logs.txt");
  if (is_there(folder / "run_1" / "spl.txt") || (session && is_there(folder / "run_1")) ||
      (session && is_there(folder / "ranging")))
    return run::SubmissionKind::inference;
  if (has_prefixed(folder / "power", "result_")) return run::SubmissionKind::training;
  if (is_there(folder / "energy" / "trace1-energy.bin") ||
      is_there(folder / "energy" / "trace1-timestamps.json"))
    return run::SubmissionKind::tiny;
  return {};
}

void collect(const fs::path& folder, std::size_t depth, std::vector<Found>& found) {
  if (const auto kind = kind_of(folder)) {
    found.push_back({*kind, folder.string()});
    return;
  }
  if (depth >= kMaxDepth) return;
  std::vector<fs::path> below;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) below.push_back(entry->path());
  }
  std::ranges::sort(below);
  for (const fs::path& path : below) collect(path, depth + 1, found);
}

// The first of `names` that is a scenario, and what stands before it: "bert-99_Offline_v4.1" and
// results/SYSTEM/bert-99/Offline alike.
void name_from(const std::vector<std::string>& names, run::Submission& s) {
  for (std::size_t i = 0; i < names.size(); ++i)
    for (const char* scenario : {"Offline", "Server", "Interactive", "SingleStream", "MultiStream"})
      if (names[i] == scenario) {
        s.scenario = names[i];
        if (i >= 1) s.benchmark = names[i - 1];
        if (i >= 2) s.system = names[i - 2];
        if (i >= 3 && names[i - 3] != "results") s.submitter = names[i - 3];
        if (i >= 4 && names[i - 3] == "results") s.submitter = names[i - 4];
        if (i + 1 < names.size()) s.round = names[i + 1];
      }
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// Only inside a results tree do the folders above mean anything.
void name_by_path(const fs::path& path, run::Submission& submission) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(path, error);
  if (error) whole = path;
  std::vector<std::string> names;
  for (const fs::path& part : whole) names.push_back(part.string());
  if (!names.empty() && names.back() == "performance") names.pop_back();
  name_from(names, submission);
  if (submission.benchmark.empty() && !names.empty())
    name_from(split(names.back(), '_'), submission);
}

// systems/SYSTEM.json above the submission, or system.json in it.
void describe(const fs::path& folder, run::Submission& submission) {
  std::vector<fs::path> candidates{folder / "system.json"};
  if (folder.filename() == "performance")
    candidates.push_back(folder.parent_path() / "system.json");
  fs::path above = folder;
  for (int i = 0; i < 6 && above.has_relative_path(); ++i) {
    above = above.parent_path();
    if (!submission.system.empty())
      candidates.push_back(above / "systems" / (submission.system + ".json"));
  }
  for (const fs::path& path : candidates) {
    if (!is_there(path)) continue;
    Files files(path.parent_path(), submission);
    if (const auto text = files.read(path.filename().string()))
      submission.description =
          read_description(path.filename().string(), *text, submission.diagnostics);
    break;
  }
  const auto of = [&](const char* key) {
    const auto found = submission.description.find(key);
    return found == submission.description.end() ? std::string() : found->second;
  };
  if (submission.submitter.empty()) submission.submitter = of("submitter");
  if (submission.system.empty()) submission.system = of("system_name");
}

run::InferencePart read_part(Files& files, const std::string& name, run::Inference& inference,
                             Diagnostics& diagnostics) {
  run::InferencePart part;
  const auto take = [&](const std::string& file, const std::string& what) {
    const std::string path = name + "/" + file;
    std::optional<std::string> text = files.require(path, what);
    if (text) inference.files[path] = sha1(*text);
    return text;
  };
  const std::string detail = "mlperf_log_detail.txt";
  if (const auto text = take(detail, "without it no window is known"))
    part.loadgen = read_loadgen(name + "/" + detail, *text, diagnostics);
  if (const auto text = take("mlperf_log_summary.txt", "it belongs to a submission"))
    read_summary(*text, part.loadgen);
  if (const auto text = take("spl.txt", "without it no power is known"))
    part.power = read_power_log(name + "/spl.txt", *text, diagnostics);
  return part;
}

run::Inference read_inference(const fs::path& folder, run::Submission& submission) {
  run::Inference inference;
  Files files(folder, submission);
  Diagnostics& diagnostics = submission.diagnostics;
  inference.testing = read_part(files, "run_1", inference, diagnostics);
  inference.ranging = read_part(files, "ranging", inference, diagnostics);
  const auto take = [&](const std::string& file) {
    const std::string path = "power/" + file;
    std::optional<std::string> text = files.require(path, "it belongs to a submission");
    if (text) inference.files[path] = sha1(*text);
    return text;
  };
  if (const auto text = take("client.json"))
    inference.client = read_session("power/client.json", *text, diagnostics);
  if (const auto text = take("server.json"))
    inference.server = read_session("power/server.json", *text, diagnostics);
  if (const auto text = take("ptd_logs.txt"))
    inference.ptd = read_ptd_log("power/ptd_logs.txt", *text, diagnostics);
  take("client.log");
  take("server.log");
  Files above(folder.parent_path(), submission);
  if (const auto text = above.read("accuracy/accuracy.txt")) inference.accuracy = *text;
  for (const Files& where : {files, above})
    for (const std::string& name : where.list()) {
      if (name.starts_with("analyzer_table")) inference.analyzer_table = true;
      if (name.starts_with("power_settings")) inference.power_settings = true;
    }
  return inference;
}

run::Training read_training(const fs::path& folder, run::Submission& submission) {
  run::Training training;
  Files files(folder, submission);
  Diagnostics& diagnostics = submission.diagnostics;
  const std::vector<std::string> powers = files.list("power");
  const auto add = [&](const std::string& name) {
    run::TrainingRun run;
    if (const auto text = files.require(name + ".txt", "without it no run is known"))
      run = read_training_result(name + ".txt", *text, diagnostics);
    run.name = name;
    run.power_folder = files.has("power/" + name);
    for (const std::string& meter : files.list("power/" + name)) {
      if (!meter.ends_with(".txt")) continue;
      const bool is_switch = meter.starts_with("sw_");
      if (!is_switch && !meter.starts_with("node_")) continue;
      const std::string path = "power/" + name + "/" + meter;
      const auto text = files.read(path);
      if (!text) continue;
      run.meters.push_back(read_training_power(path, *text, diagnostics));
      run.meters.back().is_switch = is_switch;
      run.meters.back().series.name = meter.substr(0, meter.size() - 4);
    }
    if (submission.benchmark.empty()) submission.benchmark = run.benchmark;
    training.runs.push_back(std::move(run));
  };
  std::vector<std::string> names;
  for (const std::string& name : files.list())
    if (name.starts_with("result_") && name.ends_with(".txt"))
      names.push_back(name.substr(0, name.size() - 4));
  for (const std::string& name : powers)
    if (name.starts_with("result_") && std::ranges::find(names, name) == names.end())
      names.push_back(name);
  std::ranges::sort(names);
  for (const std::string& name : names) add(name);
  if (const auto text = files.read("scaling.json"))
    training.scaling_factor = read_scaling("scaling.json", *text, diagnostics);
  return training;
}

run::Tiny read_tiny(const fs::path& folder, run::Submission& submission) {
  run::Tiny tiny;
  Files files(folder, submission);
  Diagnostics& diagnostics = submission.diagnostics;
  const std::string trace = "energy/trace1-energy.bin", marks = "energy/trace1-timestamps.json",
                    results = "energy/results.txt";
  if (const auto bytes = files.require(trace, "without it no energy is known"))
    read_energy_trace(trace, *bytes, tiny, diagnostics);
  if (const auto text = files.require(marks, "without it no window is known"))
    read_windows(marks, *text, tiny, diagnostics);
  if (const auto text = files.require(results, "without it no work is known"))
    read_tiny_results(results, *text, tiny, diagnostics);
  if (const auto text = files.read("energy/log.txt")) read_tiny_log(*text, tiny);
  if (const auto text = files.read("accuracy/results.txt")) read_tiny_accuracy(*text, tiny);
  if (submission.benchmark.empty()) submission.benchmark = tiny.model;
  return tiny;
}

}  // namespace

Result<std::vector<Found>> find_submissions(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(ExitCode::bad_input,
                fmt::format("{} is no folder; name one with MLPerf results", printable(folder)));
  fs::path start = fs::path(folder).lexically_normal();
  if (!start.has_filename()) start = start.parent_path();
  // A part of a submission stands for the whole.
  for (const char* part : {"energy", "power", "run_1"})
    if (start.filename() == part && kind_of(start.parent_path())) start = start.parent_path();
  std::vector<Found> found;
  collect(start, 0, found);
  if (found.empty())
    return fail(ExitCode::bad_input,
                fmt::format("{} holds no power submission: neither run_1/spl.txt, nor "
                            "power/result_*, nor energy/trace1-energy.bin",
                            printable(folder)));
  return found;
}

run::Submission read_submission(const Found& found) {
  run::Submission submission;
  submission.kind = found.kind;
  submission.path = found.path;
  const fs::path folder(found.path);
  name_by_path(folder, submission);
  if (found.kind == run::SubmissionKind::inference)
    submission.inference = read_inference(folder, submission);
  if (found.kind == run::SubmissionKind::training)
    submission.training = read_training(folder, submission);
  if (found.kind == run::SubmissionKind::tiny) submission.tiny = read_tiny(folder, submission);
  describe(folder, submission);
  if (submission.scenario.empty() && submission.inference)
    submission.scenario = submission.inference->testing.loadgen.scenario;
  return submission;
}

}  // namespace joulediff::mlperf
