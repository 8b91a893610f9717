// What was imperfect about a launch, in words for people.
#pragma once

#include "base/result.h"
#include "lab/pack.h"
#include "run/model.h"

namespace joulediff::lab {

// Why there is nothing to pack, and what a person can do about it.
Error nothing_recorded(const Recorded& recorded);

// Torn spools, an end that came early, and what the processes say themselves.
void tell_imperfections(run::Run& run, const Recorded& recorded);

}  // namespace joulediff::lab
