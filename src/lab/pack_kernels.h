// The kernels of one process's order and trace passes. A kernel's correlation id leads to the
// operator call that launched it. They are sorted by their start, since device buffers arrive in
// any order.
#pragma once

#include "lab/order_steps.h"
#include "lab/spool_contents.h"
#include "run/model.h"

namespace joulediff::lab {

// `block` has its steps.
void add_kernels(run::Run& run, run::Block& block, const SpoolContents& spool,
                 const OrderSteps& order);

}  // namespace joulediff::lab
