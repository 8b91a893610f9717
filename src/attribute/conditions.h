// What else was going on: clocks, limits, sensors. Nothing here changes a line of the ledger but
// its interval.
#pragma once

#include <optional>

#include "base/diagnostics.h"
#include "meter/meter.h"
#include "run/model.h"

namespace joulediff::attribute {

// Adds a diagnostic; one of the same rule is counted instead.
void add(Diagnostics& diagnostics, Severity severity, std::string rule, std::string message);

// Mean of a series over the windows; none with fewer than 3 samples.
std::optional<double> mean_over(const run::Block& block, run::Source source,
                                const std::vector<meter::Reading>& windows);

// Share of samples in which the device was held back by a power or thermal limit.
std::optional<double> held_back(const run::Block& block,
                                const std::vector<meter::Reading>& windows);

// By how much power changed from the begin to the end of these readings, which follow one another:
// relative to their mean, by a straight line through them. None where it may be chance (5 %,
// Student) or there are fewer than 8.
std::optional<double> drift(const std::vector<meter::Reading>& readings);

// The sensor's period (seconds) that a step of this length locks to; none if it does not.
std::optional<double> locked_period(double step_seconds);

}  // namespace joulediff::attribute
