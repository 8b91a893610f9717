// joulediff compare: what differs between two recorded runs, and why.
#include "diagnose/compare.h"

#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "attribute/attribute.h"
#include "base/format.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "match/explain.h"
#include "match/match.h"
#include "report/matching.h"
#include "report/page.h"
#include "rules/rules.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  bool json = false;
  std::optional<std::string> gate;
  std::size_t top = 10;
  std::vector<std::string> despite;
  std::string explain;
};

// "5%" or "0.05".
Result<double> limit(const std::string& text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  if (!CLI::detail::lexical_cast(digits, value) || !(value >= 0 && value <= 1000))
    return fail(ExitCode::usage, fmt::format("--gate {}: give a limit such as 5%", text));
  if (!percent && value >= 1)
    return fail(ExitCode::usage,
                fmt::format("--gate {}: is that {} % or {} %? Give it with its sign, as 5%", text,
                            value, 100 * value));
  return percent ? value / 100 : value;
}

// The rules named are taken as warnings; naming one that did not refuse the pair is a mistake.
Status set_aside(rules::Verdict& verdict, const std::vector<std::string>& despite) {
  for (const std::string& rule : despite) {
    bool found = false;
    for (Diagnostic& reason : verdict.reasons) {
      if (reason.rule != rule || reason.severity != Severity::error) continue;
      reason.severity = Severity::warning;
      reason.message += " (compared despite it)";
      found = true;
    }
    if (!found)
      return fail(ExitCode::usage,
                  fmt::format("--despite {}: no such rule refuses this comparison", rule));
  }
  verdict.ok = true;
  for (const Diagnostic& reason : verdict.reasons)
    verdict.ok = verdict.ok && reason.severity != Severity::error;
  return {};
}

tl::unexpected<Error> refused(const rules::Verdict& verdict) {
  std::string message;
  std::size_t others = 0;
  for (const Diagnostic& reason : verdict.reasons) {
    if (reason.severity != Severity::error) continue;
    if (message.empty())
      message = fmt::format("not comparable: {} [{}]", reason.message, reason.rule);
    else
      ++others;
  }
  if (others > 0) message += fmt::format(" (and {} more in the report)", others);
  return fail(ExitCode::not_comparable, std::move(message));
}

ExitCode code_of(diagnose::Gate gate) {
  switch (gate) {
    case diagnose::Gate::passed: return ExitCode::fine;
    case diagnose::Gate::failed: return ExitCode::gate_failed;
    case diagnose::Gate::undecided: return ExitCode::gate_undecided;
  }
  return ExitCode::gate_undecided;
}

// The region of "r9", or the first that holds an operator so named, in A or else in B.
Result<std::size_t> region_of(const std::string& asked, const run::Run& a, const run::Run& b,
                              const match::Match& match) {
  std::size_t number = 0;
  if (asked.size() > 1 && asked[0] == 'r' && CLI::detail::lexical_cast(asked.substr(1), number)) {
    if (number < match.regions.size()) return number;
    return fail(ExitCode::usage, fmt::format("--explain-match {}: there are {} regions, from r0 on",
                                             asked, match.regions.size()));
  }
  for (const bool in_a : {true, false}) {
    for (std::size_t r = 0; r < match.regions.size(); ++r) {
      for (const run::OperatorId id : in_a ? match.regions[r].a : match.regions[r].b) {
        const std::string name = "." + (in_a ? a : b).operators[id.index()].name + ".";
        if (name.find("." + asked + ".") != std::string::npos) return r;
      }
    }
  }
  return fail(
      ExitCode::usage,
      fmt::format("--explain-match {}: no region holds an operator of that name; give one, or a "
                  "region such as r3",
                  asked));
}

Result<ExitCode> explain(const Options& options) {
  JD_ASSIGN(const run::Run a, run::read_run(options.a));
  JD_ASSIGN(const run::Run b, run::read_run(options.b));
  const match::Match match = match::match(a, b);
  JD_ASSIGN(const std::size_t region, region_of(options.explain, a, b, match));
  const report::MatchPage page{a, b, match, region,
                               match::explain(a, b, match, match.regions[region])};
  JD_TRY(print(options.json ? report::json(page) : report::text(page)));
  return ExitCode::fine;
}

Result<ExitCode> compare(const Options& options) {
  for (const std::string& path : {options.a, options.b})
    if (path.ends_with(".toml"))
      return fail(ExitCode::bad_input,
                  fmt::format("{} is a measurement in TOML, and compare is for recorded runs; "
                              "joulediff check takes both",
                              printable(path)));
  if (!options.explain.empty()) return explain(options);
  report::Page page;
  page.top = options.top;
  page.colour = colour_wanted();
  if (options.gate) {
    JD_ASSIGN(page.gate, limit(*options.gate));
  }
  JD_ASSIGN(const run::Run a, run::read_run(options.a));
  JD_ASSIGN(const run::Run b, run::read_run(options.b));
  rules::Verdict verdict = rules::comparable(a, b);
  JD_TRY(set_aside(verdict, options.despite));

  Result<attribute::Attribution> cost_a = attribute::attribute(a);
  Result<attribute::Attribution> cost_b = attribute::attribute(b);
  page.a = {&a, cost_a ? &*cost_a : nullptr};
  page.b = {&b, cost_b ? &*cost_b : nullptr};
  diagnose::Comparison comparison;
  comparison.comparable = verdict;
  if (verdict.ok) {
    if (!cost_a) return fail(std::move(cost_a).error().within(options.a));
    if (!cost_b) return fail(std::move(cost_b).error().within(options.b));
    const match::Match match = match::match(a, b);
    comparison = diagnose::compare({a, b, *cost_a, *cost_b, match, verdict});
  }
  page.comparison = &comparison;
  JD_TRY(print(options.json ? report::json(page) : report::text(page)));
  if (!verdict.ok) return refused(verdict);
  return page.gate ? code_of(diagnose::gate(comparison, *page.gate)) : ExitCode::fine;
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("compare", "Say where two recorded runs differ, and why");
  verb->add_option("A", options->a, "a recorded run")->required();
  verb->add_option("B", options->b, "another that did the same work")->required();
  verb->add_flag("--json", options->json, "print joulediff.compare/1 instead of text");
  verb->add_option("--gate", options->gate,
                   "end with 1 if B surely needs more than this above A (5%), with 6 if undecided");
  verb->add_option("--top", options->top, "rows of each table")->check(CLI::Range(1, 1000000));
  verb->add_option(
      "--explain-match", options->explain,
      "say instead why a region (r3, or the first with an operator, gelu) is matched so");
  verb->add_option("--despite", options->despite, "compare although this rule refuses")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->callback([options, &context] { context.chosen = [options] { return compare(*options); }; });
}

}  // namespace joulediff::cli
