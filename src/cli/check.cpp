// joulediff check: may this measurement be believed, and may these two be compared?
#include "report/check.h"

#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "attribute/attribute.h"
#include "base/file.h"
#include "base/format.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "rules/grammar.h"
#include "rules/run_point.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  std::vector<std::string> despite;
  bool json = false;
};

// The run's energies, of one step of each block.
void add_energies(const run::Run& run, run::Point& point) {
  const auto cost = attribute::attribute(run);
  if (!cost) return;
  const double work = attribute::work_of_step(run);
  point.energy.joules = cost->ledger.total.joules.value;
  point.work.count = work;
  for (const attribute::BlockCosts& block : cost->blocks)
    if (block.ledger && block.ledger->total.joules.value > 0)
      point.repeats.joules.push_back(block.ledger->total.joules.value / work);
}

// A run file is a database; anything else is the text of a point.
Result<run::Point> read(const std::string& path) {
  JD_ASSIGN(const std::string bytes, read_file(path, run::kMaxRunFileBytes));
  if (bytes.starts_with("SQLite format 3") || path.ends_with(".jd")) {
    JD_ASSIGN(const run::Run run, run::read_run(path));
    run::Point point = rules::point_of(run);
    add_energies(run, point);
    if (point.label.empty()) point.label = path;
    return point;
  }
  return run::read_point(path);
}

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
  JD_ASSIGN(page.a, read(options.a));
  if (!options.b.empty()) {
    JD_ASSIGN(page.b, read(options.b));
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
      ->take_all();
  verb->add_flag("--json", options->json, "print joulediff.check/1 instead of text");
  verb->callback([options, &context] { context.chosen = [options] { return check(*options); }; });
}

}  // namespace joulediff::cli
