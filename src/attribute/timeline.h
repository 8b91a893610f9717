// How the device spent a window of the trace.
#pragma once

#include <vector>

#include "attribute/recognise.h"
#include "run/model.h"

namespace joulediff::attribute {

// A pause up to this long is the program failing to feed the device; a longer one is idleness.
constexpr Nanoseconds kLaunchGap = 1'000'000;

// Per operator, inside the window.
struct Usage {
  double calls = 0;       // a call that is cut counts by its kernels' time
  double seconds = 0;     // of its kernels
  double share = 0;       // seconds of the busy time that are its own: overlaps are divided
  double overlapped = 0;  // of `seconds`, beside another kernel
};

// Seconds. busy + waiting + launch_gap + idle = the window.
struct Timeline {
  double busy = 0;     // union of kernel time, but for
  double waiting = 0;  // where nothing runs but communication
  double launch_gap = 0;
  double idle = 0;
  double overlapped = 0;  // where more than one kernel runs
  std::vector<Usage> usage;
};

Timeline timeline(const run::Run& run, const run::KernelSeries& trace,
                  const Recognition& recognition, Nanoseconds begin, Nanoseconds end);

}  // namespace joulediff::attribute
