// By how much longer an operator's kernels take in the program than in its replay: waiting for HBM
// where the replay found its inputs in the cache costs time, which says what no meter does.
//
// A replay's time holds the gaps between its kernels, too: in_replay = in_program / (1 + slower) +
// gap. No clock tells the gap. But no operator is quicker in the program than in its replay, so the
// gap is at least what any replay takes longer; and it is at most what kernels of a graph need.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace joulediff::attribute {

// Seconds of one execution of an operator that was replayed at the program's clock.
struct Timing {
  double in_program = 0;  // of its kernels
  double in_replay = 0;   // from one execution to the next
  double kernels = 1;     // in one execution
};

struct Slowdown {
  double relative = 0;
  double half_width = 0;  // 95 %
};

// One for each; none where the time is not known.
std::vector<std::optional<Slowdown>> slowdowns(std::span<const std::optional<Timing>> timings);

}  // namespace joulediff::attribute
