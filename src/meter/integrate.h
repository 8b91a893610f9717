// Energy of a series of power readings over a window: the trapezoid between the window's ends, the
// mean that MLPerf takes instead, and what is wrong with the readings.
#pragma once

#include <optional>
#include <span>

#include "base/units.h"

namespace joulediff::meter {

// SCPI meters say 9.91e37 for "no number" and 9.9e37 for "over range".
constexpr double kOverflow = 1e30;

struct Readings {
  std::span<const Nanoseconds> time;
  std::span<const double> watts;
};

struct Integral {
  Joules trapezoid;     // every finite reading as it stands; the ends interpolated
  Joules bridged;       // without the readings at or below 0, their neighbours joined
  Watts mean;           // of the finite readings inside
  Watts mean_positive;  // of those above 0
  Watts peak;
  Watts least_before;  // least positive reading before the window: an upper bound of idle
  bool known_before = false;

  std::size_t inside = 0;       // readings in [begin, end], unusable ones too
  std::size_t nonpositive = 0;  // at or below 0
  std::size_t not_numbers = 0;  // NaN
  std::size_t overflows = 0;
  std::size_t duplicates = 0;  // same time as the one before
  std::size_t backward = 0;    // earlier than the latest before it
  std::size_t invalid() const {
    return nonpositive + not_numbers + overflows + duplicates + backward;
  }
  std::size_t missing = 0;  // readings that gaps of more than 1.5 periods swallowed
  Seconds median_gap;
  Seconds max_gap;
  Seconds head;  // from the window's begin to the first reading inside
  Seconds tail;
  Seconds before;  // by which the readings begin before the window; negative: after its begin
  Seconds after;
  Seconds log;                // from the first reading to the last
  double relative_slope = 0;  // of the power over the last half of the window
};

// None where fewer than two readings of the window are usable. Out of order readings are left out.
std::optional<Integral> integrate(const Readings& readings, Nanoseconds begin, Nanoseconds end);

// The seconds by which the window's edges fit the steps of the power best, within `reach`: the
// shift that maximises the mean inside less the mean outside. None where there is no step.
std::optional<Seconds> best_shift(const Readings& readings, Nanoseconds begin, Nanoseconds end,
                                  Nanoseconds reach);

}  // namespace joulediff::meter
