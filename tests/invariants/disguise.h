// A run that says the same in other words: ids permuted, storages renumbered, names taken away,
// operators that do not depend on one another in another order.
#pragma once

#include <cstdint>
#include <vector>

#include "run/model.h"

namespace joulediff::invariants {

struct Disguised {
  run::Run run;
  std::vector<std::size_t> original;  // by operator: its index in the run it was made of
};

// The numbers of tensors, frames, stacks, signatures, kernels and storages.
Disguised renumbered(const run::Run& run, std::uint64_t seed);

// A random order among those that the values, the writes to memory and forward before backward
// allow.
Disguised reordered(const run::Run& run, std::uint64_t seed);

// Operators, modules and frames without names.
Disguised nameless(const run::Run& run);

}  // namespace joulediff::invariants
