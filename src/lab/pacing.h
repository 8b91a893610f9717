// Whether a replay runs at the clock that the program saw, and the pauses that bring it there.
//
// Back to back, an operator that draws much meets the power limit, which lowers the clock and the
// voltage under it; in the program, where other operators and pauses lie between, it does not. With
// pauses that bring the mean power down to the program's, limit and temperature are the program's.
// A clock that is too high cannot be mended by pauses: attribution scales such joules by the
// clocks.
#pragma once

#include <optional>

#include "base/units.h"

namespace joulediff::lab {

// Of a device over a time; what is not known is none.
struct Conditions {
  std::optional<double> megahertz;  // mean SM clock
  std::optional<double> held_back;  // share of samples under a power or thermal limit
  std::optional<double> power;      // mean, in any unit that is the same for both that are compared
};

struct Pace {
  Nanoseconds burst = 0;  // of executions back to back
  Nanoseconds idle = 0;   // after each burst, on average
  double duty() const { return static_cast<double>(burst) / static_cast<double>(burst + idle); }
  bool operator==(const Pace&) const = default;
};

// The paces tried for one operator: each answer comes from what the one before led to.
class Pacing {
 public:
  // `period`: how long a step of the program takes, after which its load repeats.
  Pacing(const Conditions& program, Nanoseconds period) : program_(program), period_(period) {}

  // The pace to try next, where the replay at the last one is not in the program's state; none
  // where it is, where pauses do not help, or after kMost tries.
  std::optional<Pace> next(const Conditions& replay);

  static constexpr int kMost = 4;
  static constexpr double kSame = 0.015;  // relative, of the clock

 private:
  Conditions program_;
  Nanoseconds period_;
  int tries_ = 0;
  double duty_ = 1, too_busy_ = 1, too_idle_ = 0;  // share of the time in bursts
};

}  // namespace joulediff::lab
