// joulediff merge: one run out of those of its ranks.
#include "lab/merge.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/format.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string output;
  bool force = false;
};

Result<ExitCode> merge(const Options& options) {
  JD_TRY(check_outputs({"merge", {options.output}, options.force}, options.runs));
  std::vector<run::Run> ranks;
  for (const std::string& path : options.runs) {
    JD_ASSIGN(run::Run rank, run::read_run(path));
    ranks.push_back(std::move(rank));
  }
  JD_ASSIGN(const run::Run merged, lab::merge(std::move(ranks)));
  JD_TRY(run::write_run(merged, options.output));
  JD_TRY(print(fmt::format("{}: {} ranks, {} devices, {} processes\n", printable(options.output),
                           options.runs.size(), merged.devices.size(), merged.blocks.size())));
  return ExitCode::fine;
}

}  // namespace

void add_merge(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("merge", "Make one run of those of its ranks");
  verb->add_option("RUN", options->runs, "the recorded runs, one for each rank")
      ->required()
      ->expected(2, 100'000);
  verb->add_option("-o,--output", options->output, "the run file to write")->required();
  verb->add_flag("--force", options->force, "replace an existing run file");
  verb->callback([options, &context] { context.chosen = [options] { return merge(*options); }; });
}

}  // namespace joulediff::cli
