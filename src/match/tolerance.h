// The one tolerance within which values of two runs count as equal.
#pragma once

#include "run/model.h"

namespace joulediff::match {

// max(1e-5, 32 u), at most 0.1; u is half an ulp of the coarsest format that either run computes
// in: the formats of its tensors, and those in which its settings let float32 be multiplied.
double tolerance(const run::Run& a, const run::Run& b);

}  // namespace joulediff::match
