// The ticks of a meter between two of its failures.
#pragma once

#include <vector>

#include "meter/meter.h"

namespace joulediff::meter {

struct Tick {
  Nanoseconds time = 0;
  double joules = 0;
  double uncertainty = 0;  // seconds, half width
};
using Stretch = std::vector<Tick>;

// Those inside [begin, end], in time.
std::vector<Stretch> stretches(const Meter& meter, const run::Block& block, Nanoseconds begin,
                               Nanoseconds end);
// None where there is none.
const Stretch* longest(const std::vector<Stretch>& all);

}  // namespace joulediff::meter
