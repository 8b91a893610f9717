// A recorded run in the grammar of measurements: what its manifest and its sensors say. Its
// energies are not in it: whoever has attributed them adds them.
#pragma once

#include "run/model.h"
#include "run/point.h"

namespace joulediff::rules {

run::Point point_of(const run::Run& run);

}  // namespace joulediff::rules
