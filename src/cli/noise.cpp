#include "cli/noise.h"

#include <deque>
#include <map>

#include <fmt/format.h>

#include "attribute/attribute.h"
#include "base/format.h"
#include "cli/measurement.h"
#include "cli/terminal.h"
#include "diagnose/noise.h"
#include "lab/profiles.h"
#include "report/prose.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

std::string known(const std::string& text) {
  return text.empty() ? "unknown" : printable(text);
}

std::string text(const diagnose::Noise& noise) {
  const auto floor = [](double deviation, double of_two) {
    return fmt::format(
        "standard deviation {}; a difference of two processes a side counts beyond {}",
        report::percent(deviation), report::percent(of_two));
  };
  std::string out =
      fmt::format("{} {}, driver {}, {}\n", known(noise.board), known(noise.uuid),
                  known(noise.driver), noise.date.empty() ? "date unknown" : noise.date);
  out += fmt::format("{} processes of {}\n", noise.processes, known(noise.program));
  out += report::entry("the whole", floor(noise.whole, noise.whole_floor(2, 2)), 12);
  out += report::entry("operators",
                       noise.operators
                           ? floor(*noise.operators, *noise.operator_floor(2, 2)) +
                                 fmt::format(" (of {} operators)", noise.signatures)
                           : "not known: no operator's energy is known in all of the processes",
                       12);
  return out;
}

}  // namespace

Result<ExitCode> measure_noise(const std::vector<std::string>& paths, bool keep, bool json) {
  std::deque<run::Run> runs;
  std::deque<attribute::Attribution> costs;
  std::vector<diagnose::Repeated> repeated;
  std::map<std::string, std::string> given;
  for (const std::string& path : paths) {
    JD_ASSIGN(runs.emplace_back(), run::read_run(path));
    for (const run::Block& block : runs.back().blocks) {
      const auto [first, is_new] = given.emplace(identity(runs.back(), block), path);
      if (!is_new)
        return fail(ExitCode::bad_input,
                    fmt::format("{} was given before, as {}: give each run once", printable(path),
                                printable(first->second)));
    }
    auto cost = attribute::attribute(runs.back());
    if (!cost) return fail(std::move(cost).error().within(path));
    costs.push_back(std::move(*cost));
    repeated.push_back({runs.back(), costs.back()});
  }
  JD_ASSIGN(const diagnose::Noise noise, diagnose::measure_noise(repeated));
  std::string out = json ? diagnose::to_json(noise) + "\n" : text(noise);
  if (keep) {
    JD_ASSIGN(const std::string where, lab::keep_noise(noise));
    if (!json) out += fmt::format("kept as {}\n", printable(where));
  }
  JD_TRY(print(out));
  return ExitCode::fine;
}

}  // namespace joulediff::cli
