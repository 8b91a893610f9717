// Did both runs work on the same values?
#pragma once

#include <optional>

#include "base/diagnostics.h"
#include "run/model.h"

namespace joulediff::rules {

// Compares the tensors that come from outside the step, by fingerprint and regardless of order.
// Error: they differ, beyond rounding. Warning: by rounding only, or only one side reads them.
std::optional<Diagnostic> inputs(const run::Run& a, const run::Run& b);

// Warning: most of the weights have no equal in the other run, not even when rounded. Merged and
// split weights have none either, so this never refuses.
std::optional<Diagnostic> weights(const run::Run& a, const run::Run& b);

}  // namespace joulediff::rules
