// From what recorded processes left behind (spools, series) to a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/launcher.h"
#include "lab/spool_contents.h"
#include "run/model.h"

namespace joulediff::lab {

// Facts of the manifest by which runs of several machines are put on one clock: the boot that the
// monotonic clock counts from, and wall time minus monotonic time in nanoseconds.
inline constexpr const char* kBootFact = "boot";
inline constexpr const char* kValuesOfFact =
    "values_of_rank";  // where several processes made steps
inline constexpr const char* kWallClockFact = "wall_minus_monotonic_ns";

// What one launch left.
struct Recorded {
  Launched launched;
  std::vector<SpoolContents> spools;  // one for each process that wrote one
  std::vector<std::string> strangers;
  std::uint32_t order = 0;  // run::Block::order
  std::string region;       // that was asked for; empty: none, or not known
};

// Adds the blocks of one launch, one for each of its ranks. The first brings the program
// (operators, tensors, stacks, settings, manifest); those after it are fitted to it: signatures by
// text, kernels by value, operators by index and name. Imperfections become diagnostics of the run;
// an error leaves the run as it was.
Status add_launch(run::Run& run, Recorded recorded);

}  // namespace joulediff::lab
