// What one process recorded of its passes: steps, kernels, times of operators, waits, replays.
#pragma once

#include "lab/order_steps.h"
#include "lab/spool_contents.h"
#include "run/model.h"

namespace joulediff::lab {

// Into its block; what the run counts (inputs, kernels, devices) is entered there.
void add_process(run::Run& run, run::Block& block, const SpoolContents& spool,
                 const OrderSteps& order);

}  // namespace joulediff::lab
