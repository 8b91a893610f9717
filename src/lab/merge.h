// One run out of those of its ranks, each of which was recorded by itself.
#pragma once

#include <vector>

#include "base/result.h"
#include "run/model.h"

namespace joulediff::lab {

// The ranks' runs as one, in the order given where they do not say their rank. Launches of equal
// order are one launch. Times of another machine or boot are moved onto the first run's clock by
// wall time. A series that two ranks of one host both have (the same board, the same package) is
// kept once; that of their own process trees is kept for each. The first rank says what the program
// is; the operators of the others are found by their names, and where most are not there (pipeline
// stages), they are added.
//
// Errors (bad input): fewer than two runs, other work units or frameworks, files of different pairs
// or sides, a run that is given twice, clocks that cannot be joined, launches that share no time.
Result<run::Run> merge(std::vector<run::Run> ranks);

}  // namespace joulediff::lab
