// joulediff doctor: what this machine can measure, and what would mend the rest.
#include "lab/doctor.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "report/prose.h"

namespace joulediff::cli {
namespace {

using nlohmann::ordered_json;

std::string as_json(const std::vector<lab::Check>& checks) {
  ordered_json all{{"schema", "joulediff.doctor/1"}, {"checks", ordered_json::array()}};
  for (const lab::Check& check : checks)
    all["checks"].push_back(
        {{"what", check.what},
         {"measurable", lab::name(check.health)},
         {"says", check.says},
         {"remedy", check.remedy.empty() ? ordered_json() : ordered_json(check.remedy)}});
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string as_text(const std::vector<lab::Check>& checks) {
  constexpr std::size_t kLabel = 30;
  std::string out;
  for (const lab::Check& check : checks) {
    out +=
        report::entry(fmt::format("{:<21} {:<7}", printable(check.what), lab::name(check.health)),
                      check.says, kLabel);
    if (!check.remedy.empty()) out += report::entry("", "to mend it: " + check.remedy, kLabel);
  }
  return out;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  auto json = std::make_shared<bool>(false);
  auto* verb = app.add_subcommand(
      "doctor", "Say what this machine can measure, and what would mend the rest");
  verb->add_flag("--json", *json, "print joulediff.doctor/1 instead of text");
  verb->callback([json, &context] {
    context.chosen = [json]() -> Result<ExitCode> {
      const std::vector<lab::Check> checks = lab::examine();
      JD_TRY(print(*json ? as_json(checks) : as_text(checks)));
      return ExitCode::fine;
    };
  });
}

}  // namespace joulediff::cli
