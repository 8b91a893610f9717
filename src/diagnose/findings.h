// From judged regions to findings: a cause for each, and equal causes at one place folded together.
#pragma once

#include <vector>

#include "diagnose/compare.h"
#include "diagnose/judge.h"

namespace joulediff::diagnose {

// A verdict of waste or trade-off whose finding would save too little is turned to undecided in
// `regions`.
std::vector<Finding> find(const Inputs& inputs, const std::vector<Group>& groups,
                          Comparison& comparison);

}  // namespace joulediff::diagnose
