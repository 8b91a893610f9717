// Where the time of a recording goes, and what is said of it where it is more than was asked for.
#pragma once

#include <optional>

#include "base/diagnostics.h"
#include "base/units.h"
#include "lab/launcher.h"

namespace joulediff::lab {

// The processes of a recording, one after the other.
struct Spent {
  Nanoseconds passes = 0;  // starting, and all passes but the replay
  Nanoseconds replay = 0;
  Nanoseconds after = 0;  // what the program still did when it had made them
  unsigned processes = 0;

  void add(const Launched& launched);
};

struct Budget {
  Nanoseconds whole = 0;
  bool stop = false;  // programs are ended when their passes are made
};

// Why the recording took longer: that of the three which was too long. None where it did not.
std::optional<Diagnostic> over_budget(const Budget& budget, Nanoseconds elapsed,
                                      const Spent& spent);
// Of replays that got no more time. None where all got enough.
std::optional<Diagnostic> replays_cut(const Budget& budget, const ReplayJudge::Tally& replay);
// Of replays that had pauses to run at the program's clock. None where there were none.
std::optional<Diagnostic> replays_paced(const ReplayJudge::Tally& replay);

}  // namespace joulediff::lab
