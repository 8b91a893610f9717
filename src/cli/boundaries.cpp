// joulediff boundaries: one job, or two, at several boundaries side by side.
#include "report/boundaries.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/measurement.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::vector<std::string> a, b;
  std::vector<std::string> despite;
  bool json = false;
};

Result<ExitCode> boundaries(const Options& options) {
  report::BoundariesPage page;
  JD_ASSIGN(page.a, read_measurements(options.a));
  JD_ASSIGN(page.b, read_measurements(options.b));
  JD_ASSIGN(page.table, rules::boundaries(page.a, page.b, options.despite));
  page.despite = options.despite;
  JD_TRY(print(options.json ? report::json(page) : report::text(page)));
  for (const rules::BoundaryObjection& one : page.table.objections)
    if (one.what.severity == Severity::error)
      return fail(ExitCode::not_comparable, fmt::format("not comparable: {}: {} [{}]", one.at,
                                                        one.what.message, one.what.rule));
  return ExitCode::fine;
}

}  // namespace

void add_boundaries(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand(
      "boundaries", "Show what one job costs at several boundaries, and where a saving is lost");
  verb->add_option("A", options->a,
                   "measurements of one job, each at another boundary: recorded runs, or TOML")
      ->required();
  verb->add_option("--against", options->b, "the same of another job that does the same work")
      ->type_name("B...");
  verb->add_option("--despite", options->despite, "take this rule's error as a warning")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_flag("--json", options->json, "print joulediff.boundaries/1 instead of text");
  verb->callback(
      [options, &context] { context.chosen = [options] { return boundaries(*options); }; });
}

}  // namespace joulediff::cli
