// Joules of operators from the trace's own power readings: `regression.h` over what ran in each.
#pragma once

#include <vector>

#include "attribute/estimate.h"

namespace joulediff::attribute {

// Fills in the units that ran and are not known. What the readings tell is `estimated`; what they
// do not is each operator's share of the time, `modelled`.
void fit_units(const Traced& traced, std::vector<UnitCost>& units, Diagnostics& diagnostics);

}  // namespace joulediff::attribute
