// joulediff facility: from joules per unit of work to a site's year.
#include "report/facility.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "attribute/attribute.h"
#include "base/file.h"
#include "base/format.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "facility/study.h"
#include "meter/meter.h"
#include "meter/spread.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string plan;
  bool json = false;
  std::optional<std::string> html;
  std::optional<std::string> csv;
  bool force = false;
};

constexpr std::uint64_t kLargestPlan = 16u << 20;
constexpr std::uint64_t kLargestSeries = 256u << 20;

facility::Range around(double value, double half_width) {
  return {std::max(0.0, value - half_width), value, value + half_width};
}

// What a replica draws while it waits, over the blocks that recorded it.
void take_idle(const run::Run& run, const meter::Meter& meter, facility::Measured& out) {
  std::vector<double> watts;
  double half_width = 0;
  for (const run::Block& block : run.blocks)
    if (const auto power = meter::idle_power(meter, block)) {
      watts.push_back(power->watts.value);
      half_width = std::max(half_width, power->half_width.value);
    }
  if (watts.empty()) return;
  out.idle_known = true;
  out.idle_watts = around(meter::mean(watts), std::max(half_width, meter::spread_of_mean(watts)));
}

Result<facility::Measured> measure(const std::string& path) {
  JD_ASSIGN(const run::Run run, run::read_run(path));
  auto cost = attribute::attribute(run);
  if (!cost) return fail(std::move(cost).error().within(path));
  const Energy& joules = cost->per_work_unit;
  facility::Measured out;
  out.work_unit = run.manifest.work.unit;
  out.boundary = cost->ledger.boundary;
  out.meter = cost->meter.name;
  out.systematic = cost->meter.systematic;
  out.joules_per_unit = {std::max(0.0, joules.low.value), joules.joules.value, joules.high.value};
  out.energy_ranged = joules.high > joules.low;
  out.standing = joules.standing;
  const double work = attribute::work_of_step(run);
  std::vector<double> rates;
  for (const attribute::BlockCosts& block : cost->blocks)
    if (block.ledger) rates.push_back(work / block.ledger->step_time.value);
  const double half_width = meter::spread_of_mean(rates);
  out.throughput = around(work / cost->ledger.step_time.value, half_width);
  out.throughput_ranged = half_width > 0;
  take_idle(run, cost->meter, out);
  return out;
}

// A plan's files lie where it says, seen from the plan; `read` gets the names of those it asks for.
facility::Surroundings beside(const std::string& plan, std::vector<std::string>& read) {
  const auto found = [&read, folder = std::filesystem::path(plan).parent_path()](
                         const std::string& path) -> const std::string& {
    return read.emplace_back((folder / path).string());
  };
  return {[found](const std::string& path) { return read_file(found(path), kLargestSeries); },
          [found](const std::string& path) { return measure(found(path)); }};
}

Status write(const std::optional<std::string>& path, const std::string& bytes) {
  if (!path) return {};
  return *path == "-" ? print(bytes) : write_file_atomically(*path, bytes);
}

bool to_stdout(const std::optional<std::string>& path) {
  return path && *path == "-";
}

Result<ExitCode> facility(const Options& options) {
  if ((options.json ? 1 : 0) + (to_stdout(options.html) ? 1 : 0) +
          (to_stdout(options.csv) ? 1 : 0) >
      1)
    return fail(ExitCode::usage, "only one of --json, --html - and --csv - can go to stdout");
  Outputs outputs{"facility", {}, options.force};
  for (const auto& path : {options.html, options.csv})
    if (path) outputs.files.push_back(*path);
  std::vector<std::string> inputs{options.plan};
  JD_TRY(check_outputs(outputs, inputs));
  JD_ASSIGN(const std::string bytes, read_file(options.plan, kLargestPlan));
  JD_ASSIGN(facility::Plan plan,
            facility::read_plan(bytes, options.plan, beside(options.plan, inputs)));
  JD_TRY(check_apart(outputs, inputs));
  const facility::Study study = facility::study(std::move(plan));
  JD_TRY(write(options.html, report::facility_html(study)));
  JD_TRY(write(options.csv, report::facility_csv(study)));
  if (options.json) {
    JD_TRY(print(report::facility_json(study)));
  } else if (!to_stdout(options.html) && !to_stdout(options.csv)) {
    JD_TRY(print(report::facility_text(study)));
  }
  if (study.same_work) return ExitCode::fine;
  return fail(ExitCode::not_comparable,
              study.plan.alternatives.size() == 1
                  ? "the alternative does not serve all that arrives; see the report's notes"
                  : "the alternatives do not do the same work, so none is ranked; see the report's "
                    "notes");
}

}  // namespace

void add_facility(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand(
      "facility", "Say what joules per unit of work come to in a site's year, and what decides");
  verb->add_option("PLAN", options->plan, "a plan in TOML (docs/facility.md)")->required();
  verb->add_flag("--json", options->json, "print joulediff.facility/1 instead of text");
  verb->add_option("--html", options->html, "write the report as a page, too; - for stdout");
  verb->add_option("--csv", options->csv, "write its figures as a table, too; - for stdout");
  verb->add_flag("--force", options->force, "replace existing files");
  verb->callback(
      [options, &context] { context.chosen = [options] { return facility(*options); }; });
}

}  // namespace joulediff::cli
