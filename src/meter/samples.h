// A board's power over windows of some tens of milliseconds: what its sensors say within the ticks
// of its counter.
#pragma once

#include <optional>
#include <vector>

#include "meter/meter.h"

namespace joulediff::meter {

// Readings of one source. Each is a mean over a window that ends at `end`; of one that the sampler
// polls, all ends are off by the same, up to `half_width`.
struct PowerSamples {
  run::Source source = run::Source::nvml_power_instant;
  std::vector<Nanoseconds> end;
  std::vector<double> watts;
  Nanoseconds half_width = 0;
  std::optional<double> window;  // seconds; none: the source does not say
};

// Of the board's ring and of its instant field, inside [begin, end]; a source of which it cannot be
// told when its readings were made is left out.
std::vector<PowerSamples> power_samples(const Meter& meter, const run::Block& block,
                                        Nanoseconds begin, Nanoseconds end);

}  // namespace joulediff::meter
