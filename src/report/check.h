// What the grammar of measurements holds against one measurement, or against comparing two.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/grammar.h"
#include "run/point.h"

namespace joulediff::report {

struct CheckPage {
  run::Point a;
  std::optional<run::Point> b;
  std::vector<rules::Objection> objections;
  std::vector<std::string> despite;  // rules that were set aside
};

// At most 100 columns. A ratio is there only where no rule refuses it.
std::string text(const CheckPage& page);
std::string json(const CheckPage& page);  // schema joulediff.check/1

}  // namespace joulediff::report
