#include "cli/measurement.h"

#include "attribute/attribute.h"
#include "base/file.h"
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

// A run file is a database; anything else is the text of a point.
Result<run::Point> read_measurement(const std::string& path) {
  JD_ASSIGN(const std::string bytes, read_file(path, run::kMaxRunFileBytes));
  if (!bytes.starts_with("SQLite format 3") && !path.ends_with(".jd")) return run::read_point(path);
  JD_ASSIGN(const run::Run run, run::read_run(path));
  run::Point point = rules::point_of(run);
  add_costs(run, point);
  if (point.label.empty()) point.label = path;
  return point;
}

Result<std::vector<run::Point>> read_measurements(const std::vector<std::string>& paths) {
  std::vector<run::Point> points;
  for (const std::string& path : paths) {
    JD_ASSIGN(run::Point point, read_measurement(path));
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace joulediff::cli
