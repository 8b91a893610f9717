// joulediff frontier: energy, quality, latency and rate of many measurements as one curve.
#include "report/frontier.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/format.h"
#include "cli/measurement.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "frontier/direction.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::vector<std::string> points;
  std::vector<std::string> by;
  std::vector<std::string> better;
  std::vector<std::string> despite;
  std::optional<double> quality_at_least;
  std::optional<double> latency_at_most;
  std::size_t top = 20;
  bool json = false;
};

Result<frontier::Question> question_of(const Options& options) {
  frontier::Question question;
  for (const std::string& word : options.by) {
    const auto axis = frontier::axis_of(word);
    if (!axis)
      return fail(ExitCode::usage,
                  fmt::format("--by {}: an axis is energy, quality, latency or rate", word));
    if (std::ranges::find(question.by, *axis) == question.by.end()) question.by.push_back(*axis);
  }
  for (const std::string& word : options.better) {
    JD_ASSIGN(auto direction, frontier::read_direction(word));
    const auto [said, is_new] = question.directions.insert(direction);
    if (!is_new && said->second != direction.second)
      return fail(ExitCode::usage, fmt::format("--better {}: both ways are said to be better",
                                               printable(direction.first)));
  }
  if (options.quality_at_least && !std::isfinite(*options.quality_at_least))
    return fail(ExitCode::usage, "--quality-at-least: give a number");
  question.quality_at_least = options.quality_at_least;
  if (options.latency_at_most && !std::isfinite(*options.latency_at_most))
    return fail(ExitCode::usage, "--latency-at-most: give a number of seconds");
  question.latency_at_most = options.latency_at_most;
  question.despite = options.despite;
  return question;
}

bool any_placed(const frontier::Frontier& frontier) {
  for (const frontier::Group& group : frontier.groups)
    for (const frontier::Entry& entry : group.entries)
      if (entry.entrance == frontier::Entrance::placed) return true;
  return false;
}

Result<ExitCode> frontier_of(const Options& options) {
  report::FrontierPage page;
  JD_ASSIGN(page.question, question_of(options));
  JD_ASSIGN(page.points, read_measurements(options.points));
  JD_ASSIGN(page.frontier, frontier::frontier(page.points, page.question));
  page.top = options.top;
  JD_TRY(print(options.json ? report::json(page) : report::text(page)));
  if (any_placed(page.frontier)) return ExitCode::fine;
  const frontier::Entry& first = page.frontier.groups.front().entries.front();
  return fail(ExitCode::not_comparable, fmt::format("no measurement can be placed; of {}, {}",
                                                    page.points[first.point].label, first.why));
}

}  // namespace

void add_frontier(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand(
      "frontier", "Show energy, quality and latency as one curve, and what is dominated");
  verb->add_option("POINT", options->points, "recorded runs, or measurements in TOML")->required();
  verb->add_option("--by", options->by,
                   "axes: energy, quality, latency, rate; without it all that are known")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--better", options->better,
                   "which way a metric is better: METRIC=higher or METRIC=lower")
      ->allow_extra_args(false);
  verb->add_option("--quality-at-least", options->quality_at_least,
                   "keep what is at least as good (below, where lower is better)");
  verb->add_option("--latency-at-most", options->latency_at_most, "keep what answers in as long, s")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--despite", options->despite, "let this rule keep no point apart")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--top", options->top,
                   "told of each group: trades, and what is not on its frontier")
      ->check(CLI::Range(1, 1000000));
  verb->add_flag("--json", options->json, "print joulediff.frontier/1 instead of text");
  verb->callback(
      [options, &context] { context.chosen = [options] { return frontier_of(*options); }; });
}

}  // namespace joulediff::cli
