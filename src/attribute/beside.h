// Ledgers that decide nothing: what the run's other meters saw of the same steps.
#pragma once

#include <vector>

#include "attribute/attribute.h"
#include "attribute/launch.h"
#include "meter/meter.h"

namespace joulediff::attribute {

// Adds what `meter` saw of the launch to `costs.beside`, where it saw enough. An outside meter is
// aligned first; one that cannot be is in no ledger, and a diagnostic says so.
void add_beside(const Launch& launch, meter::Meter meter, BlockCosts& costs,
                Diagnostics& diagnostics);

// Series of outside meters of which nobody said what they see.
void tell_of_unstated(const run::Run& run, Diagnostics& diagnostics);

// Whether two ledgers are of one meter.
bool same_meter(const meter::Meter& a, const meter::Meter& b);

}  // namespace joulediff::attribute
