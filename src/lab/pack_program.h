// The part of a spool that says what the program is: its facts and the operators of its step.
#pragma once

#include "lab/spool_contents.h"
#include "run/model.h"

namespace joulediff::lab {

// Operators, tensors, stacks, signatures, settings and manifest of the values pass.
void take_program(run::Run& run, const SpoolContents& spool);

// The facts of topic `diagnostic`, which every block may have.
void take_diagnostics(run::Run& run, const SpoolContents& spool);

}  // namespace joulediff::lab
