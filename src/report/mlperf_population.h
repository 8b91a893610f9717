// Over many submissions: what a unit of work costs by task, what quality costs, what changed where
// only one thing did, and where our verdict is not the official one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/frontier.h"
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
  double change = 0;   // of joules a unit, (b-a)/max(a,b)
};
std::vector<ChangeRow> changes(const MlperfPage& page);

// Submissions of one task at any quality, held against one another as `frontier` does it: groups of
// two and more. A task's level (99, 99.9) is a matter of quality, not of work, where the accuracy
// run says what was reached. Hashes and targets are for the checks, and keep nothing apart here.
// Points are those of the page, by their places.
FrontierPage curves(const MlperfPage& page);

struct CheckRow {
  std::string id;
  std::size_t official[4] = {};  // by rules::Checked
  std::size_t ours[4] = {};
  std::vector<std::string> why;  // of the submissions in which the two differ, each reason once
};
std::vector<CheckRow> by_check(const MlperfPage& page);

std::string short_name(const MlperfEntry& entry);
// In a table a path would be cut where it tells submissions apart.
std::string table_name(const MlperfEntry& entry);

}  // namespace joulediff::report
