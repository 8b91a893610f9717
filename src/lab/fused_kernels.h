// Kernels of a computation that a compiler made whole (XLA): they are all launched under the
// operator that its call begins with. Which operator each of them is, its name tells: an operator
// has the names of its kernels in `arguments.kernels` (docs/recording.md, "JAX").
#pragma once

#include "run/model.h"

namespace joulediff::lab {

// Gives each kernel of the order pass the operator that names it: the n-th kernel of a name in a
// call, the n-th operator. Kernels that no operator names (of a library) are those of the operators
// between their neighbours whose own names nothing bears; where there are none, no operator's.
// `order` is sorted by start.
void charge_by_name(const run::Run& run, run::KernelSeries& order);

}  // namespace joulediff::lab
