// When an outside meter's readings were true. Its clock is not ours, its readings come late, and
// each is a mean over some time; the edges of the load, which both sides see, tell by how much.
#pragma once

#include <optional>

#include "meter/load.h"
#include "run/model.h"

namespace joulediff::meter {

struct Estimate {
  Nanoseconds value = 0, low = 0, high = 0;  // 95 %
};

struct Alignment {
  Estimate offset;  // of a reading's stamp after the end of the time that it is a mean over
  Estimate window;  // how long that time is
  Estimate delay;   // offset + window / 2: what to take off the stamps; known best
};

// None where the load's edges do not tell: it has none, or comes in periods, or the readings do not
// follow it. Offsets up to `reach` to both sides are tried.
std::optional<Alignment> align(const run::Series& outside, const Load& load,
                               Nanoseconds reach = 5'000'000'000);

}  // namespace joulediff::meter
