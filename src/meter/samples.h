// A board's power over windows of some tens of milliseconds: what its sensors say within the ticks
// of its counter.
#pragma once

#include <optional>
#include <vector>

#include "meter/meter.h"

namespace joulediff::meter {

// When readings were made: the ends of their windows. All are off by the same, up to `half_width`
// in the middle of what was asked for and by `drift` (relative) of the time from there.
struct Stamps {
  std::vector<Nanoseconds> end;
  Nanoseconds half_width = 0;
  double drift = 0;
};

// Readings of one source, each a mean over a window.
struct PowerSamples {
  run::Source source = run::Source::nvml_power_instant;
  std::vector<double> watts;
  std::vector<Stamps> stamps;    // of all readings; several where it may be one or another
  std::optional<double> window;  // seconds; none: the source does not say
};

// Of the board's ring and of its instant field, inside [begin, end]; a source of which it cannot be
// told when its readings were made is left out.
std::vector<PowerSamples> power_samples(const Meter& meter, const run::Block& block,
                                        Nanoseconds begin, Nanoseconds end);

}  // namespace joulediff::meter
