// Whether what a region turns out is the same on both sides, for a person's purposes.
#pragma once

#include "match/anchors.h"

namespace joulediff::match {

// |a-b| <= limit max(|a|, |b|, rms) for at least 99.9 % of the sampled elements; whole numbers
// exactly. Where the two were never sampled under one shape, their moments within the limit.
bool agree(const SideView& a, const SideView& b, const Pair& pair, double limit);

}  // namespace joulediff::match
