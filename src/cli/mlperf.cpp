// joulediff mlperf: what MLPerf power submissions are worth.
#include "report/mlperf.h"

#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "base/progress.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "import/mlperf/session.h"
#include "import/mlperf/tree.h"
#include "rules/mlperf.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string sources;
  bool json = false;
  bool gate = false;
  std::size_t top = 10;
};

Result<ExitCode> mlperf(const Options& options) {
  rules::KnownSources known;
  if (!options.sources.empty()) {
    JD_ASSIGN(known, joulediff::mlperf::read_known_sources(options.sources));
  }
  std::vector<joulediff::mlperf::Found> found;
  std::set<std::string> seen;
  for (const std::string& folder : options.folders) {
    JD_ASSIGN(const auto below, joulediff::mlperf::find_submissions(folder));
    // A tree and a folder in it, or one folder twice, are one submission.
    for (const auto& one : below)
      if (seen.insert(real_path(one.path)).second) found.push_back(one);
  }
  report::MlperfPage page;
  page.top = options.top;
  Progress progress(options.json);
  bool failed = false;
  for (const auto& one : found) {
    progress.update("reading " + one.path,
                    static_cast<double>(page.entries.size()) / static_cast<double>(found.size()));
    report::MlperfEntry entry{joulediff::mlperf::read_submission(one), {}};
    entry.judgement = rules::judge(entry.submission, known);
    failed = failed || entry.judgement.ours == rules::Checked::failed;
    // A results tree has more readings than memory; what was made of them is enough.
    entry.submission.inference.reset();
    entry.submission.training.reset();
    entry.submission.tiny.reset();
    page.entries.push_back(std::move(entry));
  }
  progress.finish();
  JD_TRY(print(options.json ? report::json(page) : report::text(page)));
  return options.gate && failed ? ExitCode::gate_failed : ExitCode::fine;
}

}  // namespace

void add_mlperf(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand(
      "mlperf", "Recompute and check MLPerf power submissions: inference, training, Tiny");
  verb->add_option("DIR", options->folders, "a submission, or a tree of results")->required();
  verb->add_flag("--json", options->json, "print joulediff.mlperf/1 instead of text");
  verb->add_flag("--gate", options->gate, "end with 1 if a submission fails a check of ours");
  verb->add_option("--sources", options->sources,
                   "the official checker's sources_checksums.json: the releases of the tools");
  verb->add_option("--top", options->top, "submissions told one by one, and rows of each table")
      ->check(CLI::Range(1, 1000000));
  verb->callback([options, &context] { context.chosen = [options] { return mlperf(*options); }; });
}

}  // namespace joulediff::cli
