// What both the text and the JSON of a report say, taken together once.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/least_energy.h"
#include "diagnose/reference.h"
#include "report/page.h"

namespace joulediff::report {

// Calls of one operator, as `show` lists them.
struct OperatorRow {
  std::string name;
  std::size_t calls = 0;
  Energy energy;
  Seconds seconds;
  double share = 0;  // of the measured energy
  bool known = true;
  std::optional<diagnose::Place> where;  // of its dearest call
  std::optional<diagnose::Reference> reference;
  std::optional<diagnose::LeastEnergy> least_energy;
};

// Most joules first; operators that move no data are left out.
std::vector<OperatorRow> operator_rows(const Subject& subject);

// The ledgers of the subject, the one that decides first, by what they are called: the boundary,
// and the channel too where the subject has several of the boundary.
std::vector<std::pair<std::string, const attribute::Ledger*>> named_ledgers(const Subject& subject);

// Regions that repeat one another in the layers of a model.
struct RegionRow {
  std::vector<std::size_t> regions;  // indices in Comparison::regions
  double joules_a = 0;               // of all of them; NaN: not known
  double joules_b = 0;
};

// Largest difference in joules first.
std::vector<RegionRow> region_rows(const Page& page);

std::string region_id(const diagnose::RegionResult& region);

// The run's own and those of its attribution; equal ones counted together.
Diagnostics diagnostics(const Subject& subject);

std::string_view name(Severity severity);

}  // namespace joulediff::report
