// show --recompute: the joules of a run again, from the raw samples that the file holds.
#pragma once

#include <string>

#include "attribute/attribute.h"
#include "base/result.h"
#include "run/model.h"

namespace joulediff::cli {

// A line for each window with the readings of the meter that it rests on. An error (bad input)
// where the raw readings do not give the ledger's total, a second pass gives other numbers, or the
// total is not the one that the recorder noted (the fact "energy.total", joules a step).
Result<std::string> recompute(const run::Run& run, const attribute::Attribution& cost);

}  // namespace joulediff::cli
