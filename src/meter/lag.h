// By how much a board's counter is late.
#pragma once

#include "meter/meter.h"

namespace joulediff::meter {

// The time constant (seconds) of a first-order response between the load and the counter, from the
// edges of the block's replays, which are known: what a step of power had not brought by the time
// that it should have. 0 where the edges do not show one that the settling time leaves over.
double lag(const Meter& meter, const run::Block& block);

}  // namespace joulediff::meter
