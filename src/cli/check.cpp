// joulediff check: may this measurement be believed, and may these two be compared?
#include "report/check.h"

#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/format.h"
#include "cli/measurement.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "rules/grammar.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  std::vector<std::string> despite;
  bool json = false;
};

Status set_aside(std::vector<rules::Objection>& objections,
                 const std::vector<std::string>& despite) {
  for (const std::string& rule : despite) {
    bool found = false;
    for (rules::Objection& one : objections) {
      if (one.rule != rule || one.severity != Severity::error) continue;
      one.severity = Severity::warning;
      found = true;
    }
    if (!found)
      return fail(ExitCode::usage,
                  fmt::format("--despite {}: no such rule refuses this", printable(rule)));
  }
  return {};
}

Result<ExitCode> check(const Options& options) {
  report::CheckPage page;
  JD_ASSIGN(page.a, read_measurement(options.a));
  if (!options.b.empty()) {
    JD_ASSIGN(page.b, read_measurement(options.b));
    if (same_file(options.a, options.b))  // one file is one log, whether or not it says so
      page.a.scenario.log_hash = page.b->scenario.log_hash = options.a;
  }
  page.objections = page.b ? rules::check(page.a, *page.b) : rules::check(page.a);
  page.despite = options.despite;
  JD_TRY(set_aside(page.objections, options.despite));
  JD_TRY(print(options.json ? report::json(page) : report::text(page)));
  for (const rules::Objection& one : page.objections)
    if (one.severity == Severity::error)
      return fail(ExitCode::not_comparable,
                  fmt::format("{}: {} [{}]", page.b ? "not comparable" : "not sound", one.message,
                              one.rule));
  return ExitCode::fine;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand(
      "check", "Say what a measurement lacks, and what forbids to compare it with another");
  verb->add_option("A", options->a, "a recorded run, or a measurement described in TOML")
      ->required();
  verb->add_option("B", options->b, "another");
  verb->add_option("--despite", options->despite, "take this rule's error as a warning")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_flag("--json", options->json, "print joulediff.check/1 instead of text");
  verb->callback([options, &context] { context.chosen = [options] { return check(*options); }; });
}

}  // namespace joulediff::cli
