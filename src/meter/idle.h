// What a device draws while it waits for work.
#pragma once

#include <optional>

#include "meter/meter.h"

namespace joulediff::meter {

// From the block's idle window alone; none where it was not recorded long enough, or by the host's
// model, which has nothing to say of a host at rest.
std::optional<StaticPower> idle_power(const Meter& meter, const run::Block& block);

}  // namespace joulediff::meter
