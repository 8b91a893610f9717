#include "cli/measurement.h"

#include <type_traits>

#include <fmt/format.h>

#include "attribute/attribute.h"
#include "base/file.h"
#include "base/format.h"
#include "cli/outputs.h"
#include "rules/run_point.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

void add_costs(const run::Run& run, run::Point& point) {
  const auto cost = attribute::attribute(run);
  if (!cost) return;
  const double work = attribute::work_of_step(run);
  const Energy& total = cost->ledger.total;
  point.energy.joules = total.joules.value;
  if (total.joules.value > 0) point.energy.uncertainty = total.half_width() / total.joules;
  point.work.count = work;
  for (const attribute::BlockCosts& block : cost->blocks) {
    if (!block.ledger || !(block.ledger->total.joules.value > 0)) continue;
    point.repeats.joules.push_back(block.ledger->total.joules.value / work);
    if (block.ledger->step_time.value > 0)
      point.repeats.seconds.push_back(block.ledger->step_time.value / work);
  }
}

}  // namespace

// Whether a point says anything of a measurement but what it is called.
struct Stated {
  bool any = false;
  template <class T>
  void operator()(std::string_view section, std::string_view name, const T& value) {
    if (section.empty() && name == "label") return;
    if constexpr (std::is_same_v<T, run::Fact> || std::is_same_v<T, run::Flag>)
      any = any || value.has_value();
    else
      any = any || !value.empty();
  }
};

Result<run::Point> read_stated(const std::string& path) {
  JD_ASSIGN(run::Point point, run::read_point(path));
  Stated stated;
  run::facts(stated, point);
  if (stated.any) return point;
  return fail(ExitCode::bad_input,
              printable(path) + ": it states nothing; docs/points.md lists the facts of a point");
}

// A run file is a database; anything else is the text of a point.
Result<run::Point> read_measurement(const std::string& path) {
  JD_ASSIGN(const std::string bytes, read_file(path, run::kMaxRunFileBytes));
  if (!bytes.starts_with("SQLite format 3") && !path.ends_with(".jd")) return read_stated(path);
  JD_ASSIGN(const run::Run run, run::read_run(path));
  run::Point point = rules::point_of(run);
  add_costs(run, point);
  if (!run.blocks.empty()) point.scenario.log_hash = identity(run, run.blocks.front());
  if (point.label.empty()) point.label = path;
  return point;
}

Result<std::vector<run::Point>> read_measurements(const std::vector<std::string>& paths) {
  std::vector<run::Point> points;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    JD_ASSIGN(run::Point point, read_measurement(path));
    for (std::size_t j = 0; j < i; ++j)
      if (same_file(path, paths[j]) || (!point.scenario.log_hash.empty() &&
                                        point.scenario.log_hash == points[j].scenario.log_hash))
        return fail(ExitCode::bad_input,
                    fmt::format("{} was given before, as {}: give each measurement once",
                                printable(path), printable(paths[j])));
    points.push_back(std::move(point));
  }
  return points;
}

std::string identity(const run::Run& run, const run::Block& block) {
  const auto host = run.manifest.facts.find("host");
  return fmt::format("{}-{}-{}-{}-{}", block.begin, block.end, block.pid, block.order,
                     host == run.manifest.facts.end() ? "" : host->second);
}

}  // namespace joulediff::cli
