// The least energy that the board is known to need above static power for the same arithmetic and
// bytes: what calibration found a FLOP and a byte to cost on it, times what the operator has to do.
//
// Costs add up where times do not: a product that waits for HBM pays for both. A product's own
// bytes are in its cost for each FLOP, too, which makes the least of a large one some 5 % too high.
// Real data cost about as much as random ones; the interval spans zeros, ones and random. Bytes are
// taken from HBM: an operator whose data lie in the cache can be below 1, as with the time.
#pragma once

#include <optional>
#include <span>

#include "attribute/attribute.h"
#include "meter/calibrate.h"
#include "run/model.h"

namespace joulediff::diagnose {

struct LeastEnergy {
  Energy joules;             // of these operators in one step, dynamic
  double distance = 0;       // their dynamic joules / it
  double low = 0, high = 0;  // of the distance, 95 %
};

// None where the run carries no profile of its board, the profile has no cost for what they do, or
// their own joules or tensors are not known.
std::optional<LeastEnergy> least_energy(const run::Run& run, const attribute::Attribution& costs,
                                        std::span<const run::OperatorId> operators);

// The profile of the board that the run used, as it was when the run was recorded.
std::optional<meter::Profile> profile_of(const run::Run& run);

}  // namespace joulediff::diagnose
