// One job, or two, at several boundaries side by side.
#pragma once

#include <string>
#include <vector>

#include "rules/boundaries.h"

namespace joulediff::report {

struct BoundariesPage {
  std::vector<run::Point> a, b;  // b is empty: one job
  rules::Boundaries table;       // of them
  std::vector<std::string> despite;
};

std::string text(const BoundariesPage& page);  // at most 100 columns
std::string json(const BoundariesPage& page);  // schema joulediff.boundaries/1

}  // namespace joulediff::report
