// The one tolerance within which values of two runs count as equal.
#pragma once

#include "run/model.h"

namespace joulediff::match {

// max(1e-5, 32 u), at most 0.1; u is half an ulp of the coarsest format that either run computes
// in: the formats of its tensors, and those in which its settings let float32 be multiplied.
double tolerance(const run::Run& a, const run::Run& b);

// How far an element of an output may be off, relative to itself or the rms, for the outputs to
// agree: 0.01, or 16 u of the format that both runs are at least as coarse as. Two implementations
// in bfloat16 are up to 6 % apart at single logits; float32 against bfloat16 is held to 1 %.
double element_tolerance(const run::Run& a, const run::Run& b);

}  // namespace joulediff::match
