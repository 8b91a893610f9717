// The power of a run's boards over time (meter/power_curve.h), for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "meter/power_curve.h"

namespace joulediff::report {

struct PowerPage {
  const run::Run* run = nullptr;
  std::vector<meter::PowerCurve> curves;
};

// A line of blocks and a table of what the block did, for each board; at most 100 columns.
std::string power_text(const PowerPage& page);

// Schema joulediff.power/1 (docs/schemas).
std::string power_json(const PowerPage& page);

}  // namespace joulediff::report
