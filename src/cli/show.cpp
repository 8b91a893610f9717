// joulediff show: where one run's joules go.
#include <memory>

#include <CLI/CLI.hpp>

#include "attribute/attribute.h"
#include "cli/recompute.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "report/page.h"
#include "report/power.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string run;
  bool json = false;
  bool recompute = false;
  bool power = false;
  std::size_t operators = 20;
};

Result<ExitCode> show_power(const run::Run& run, bool json) {
  const report::PowerPage page{&run, meter::power_curves(run)};
  if (page.curves.empty())
    return fail(ExitCode::environment,
                "no power: the run has no readings of a board's counter, ring or power field; run "
                "`joulediff doctor` on the machine, then record again");
  JD_TRY(print(json ? report::power_json(page) : report::power_text(page)));
  return ExitCode::fine;
}

Result<ExitCode> show(const Options& options) {
  JD_ASSIGN(const run::Run run, run::read_run(options.run));
  if (options.power) return show_power(run, options.json);
  JD_ASSIGN(const attribute::Attribution cost, attribute::attribute(run));
  if (options.recompute) {
    JD_ASSIGN(const std::string lines, recompute(run, cost));
    JD_TRY(print(lines));
    return ExitCode::fine;
  }
  report::Page page;
  page.a = {&run, &cost};
  page.top = options.operators;
  page.colour = colour_wanted();
  JD_TRY(print(options.json ? report::json(page) : report::text(page)));
  return ExitCode::fine;
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("show", "Say where one recorded run's joules go");
  verb->add_option("RUN", options->run, "a recorded run")->required();
  verb->add_flag("--json", options->json,
                 "print joulediff.show/1 (with --power joulediff.power/1) instead of text");
  verb->add_flag("--power", options->power, "the power of each board over time (docs/power.md)");
  verb->add_flag("--recompute", options->recompute,
                 "take the energy again from the raw samples and check that it agrees")
      ->excludes("--json")
      ->excludes("--power");
  verb->add_option("--operators", options->operators, "rows of the table of operators")
      ->check(CLI::Range(1, 1000000));
  verb->callback([options, &context] { context.chosen = [options] { return show(*options); }; });
}

}  // namespace joulediff::cli
