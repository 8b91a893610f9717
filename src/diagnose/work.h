// What an operator has to do at least: arithmetic and bytes, from the shapes of its tensors.
#pragma once

#include <optional>

#include "run/model.h"

namespace joulediff::diagnose {

struct WorkOf {
  double matrix = 0;  // floating-point operations of matrix products: 2 for a multiply and add
  value::DType dtype = value::DType::other;  // of their operands
  double vector = 0;                         // of all else: one for each element at least
  double bytes = 0;                          // each element that must be read or written, once
};

// None where the values pass did not see its tensors.
std::optional<WorkOf> work_of(const run::Run& run, const run::Operator& op);

}  // namespace joulediff::diagnose
