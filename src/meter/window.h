// Replay windows: chunks of executions that follow one another without a break.
#pragma once

#include <vector>

#include "run/model.h"

namespace joulediff::meter {

struct Window {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  std::vector<run::Replay> chunks;  // in time

  // Executions between two instants; a chunk that is cut counts by its time.
  double executions(Nanoseconds from, Nanoseconds to) const;
};

// Windows of chunks of one thing.
std::vector<Window> contiguous(std::vector<run::Replay> chunks);

// The windows of the floor.
std::vector<Window> floor_windows(const run::Block& block, run::ReplayKind kind);

}  // namespace joulediff::meter
