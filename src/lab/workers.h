// The processes of a launch that make steps, and how each is named among them.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/spool_contents.h"

namespace joulediff::lab {

struct Worker {
  const SpoolContents* spool = nullptr;
  std::uint32_t rank = 0;
  bool numbered = false;  // it was told a rank: it is one of several that make the same
};

// In the order of their ranks, which are the same in every launch of a program: what the processes
// were told (torchrun, MPI); where not all were, or two were told the same, their places in the
// order in which they were started, which is that of multiprocessing's own numbers, and else of
// time.
std::vector<Worker> workers(const std::vector<SpoolContents>& spools);

}  // namespace joulediff::lab
