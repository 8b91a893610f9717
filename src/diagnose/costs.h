// What a set of operators costs on one side: in the mean, and block by block.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attribute/attribute.h"
#include "run/model.h"

namespace joulediff::diagnose {

// A quantity measured once in each block (a process) of a run.
struct Measured {
  double mean = 0;
  std::vector<double> blocks;
  double within = 0;  // standard error of the mean that the blocks' own intervals imply
  Standing standing = Standing::measured;
  bool known = true;

  // With a 95 % interval: Student over the blocks, at least what lies within them.
  Energy energy() const;
};

Measured cost(const run::Run& run, const attribute::Attribution& costs,
              std::span<const run::OperatorId> operators);
Seconds time(const attribute::Attribution& costs, std::span<const run::OperatorId> operators);

// Measured energy of a step, divided by the work it does.
Measured per_work_unit(const run::Run& run, const attribute::Attribution& costs);

}  // namespace joulediff::diagnose
