// Programs that nobody attends: no plug-in and no engine marked their steps.
#pragma once

#include <optional>

#include "lab/spool_contents.h"

namespace joulediff::lab {

// The spool as if the program had marked its steps: they are the period of its kernel stream, and
// each kernel of a period is an operator, "kernel.NAME", without values. Where nothing repeats, all
// is one step and each distinct kernel an operator. A diagnostic says which, and how well it fits.
// None: the spool has steps of its own, or no kernels.
std::optional<SpoolContents> with_found_steps(const SpoolContents& spool);

}  // namespace joulediff::lab
