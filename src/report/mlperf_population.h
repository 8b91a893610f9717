// Over many submissions: what a unit of work costs by task, what quality costs, what changed where
// only one thing did, and where our verdict is not the official one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/mlperf.h"

namespace joulediff::report {

struct TaskRow {
  std::string task;  // "bert-99 Offline"
  std::string unit;
  std::size_t count = 0;
  double least = 0, median = 0, most = 0;  // joules a unit
};
std::vector<TaskRow> by_task(const MlperfPage& page);

// The same task on the same system at 99 and at 99.9 % of the reference's quality.
struct QualityRow {
  const MlperfEntry* low = nullptr;
  const MlperfEntry* high = nullptr;
  double efficiency = 0;  // of high relative to low
  bool same_log = false;
};
std::vector<QualityRow> cost_of_quality(const MlperfPage& page);

// Two submissions of one task of which the descriptions differ in one kind of thing only.
struct ChangeRow {
  const MlperfEntry* a = nullptr;
  const MlperfEntry* b = nullptr;
  std::string what;    // "software", "hardware", "neither"
  std::string detail;  // the fields that differ
  double change = 0;   // of joules a unit, (b-a)/a
};
std::vector<ChangeRow> changes(const MlperfPage& page);

// Submissions of one task at any quality: which of them are dominated, that is, another at the same
// boundary needs no more energy a unit, is no slower, later or worse, and better in one of these.
struct CurvePoint {
  const MlperfEntry* entry = nullptr;
  bool dominated = false;
};
struct Curve {
  std::string task;  // "bert Offline"
  std::string unit;
  std::vector<CurvePoint> points;  // least energy first
};
std::vector<Curve> curves(const MlperfPage& page);

struct CheckRow {
  std::string id;
  std::size_t official[4] = {};  // by rules::Checked
  std::size_t ours[4] = {};
  std::vector<std::string> why;  // of the submissions in which the two differ, each reason once
};
std::vector<CheckRow> by_check(const MlperfPage& page);

std::string short_name(const MlperfEntry& entry);

}  // namespace joulediff::report
