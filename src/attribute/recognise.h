// Which operator launched each kernel of the trace pass.
#pragma once

#include <vector>

#include "run/model.h"

namespace joulediff::attribute {

// One step's kernels in order, as the order pass saw them.
struct Template {
  std::vector<run::KernelId> kernel;
  std::vector<run::OperatorId> op;
  std::vector<std::uint32_t> stream;
  std::vector<double> seconds;
  std::size_t size() const { return kernel.size(); }
};

// The sequence that most steps of the order pass agree on; empty without an order pass.
Template step_template(const run::Run& run, const run::Block& block);

// Where the trace stood: at `time` a kernel began that takes the run from `progress` steps to
// `progress + share` in `seconds`.
struct Mark {
  Nanoseconds time = 0;
  double progress = 0;
  double share = 0;
  double seconds = 0;
};

struct Recognition {
  std::vector<run::OperatorId> op;              // of each trace kernel; none if not recognised
  std::vector<std::uint32_t> kernels_per_call;  // by operator; 0: launches none
  double share = 0;                             // of trace kernel time that has an operator
  std::vector<Mark> marks;                      // in time
};

Recognition recognise(const run::Run& run, const run::Block& block, const Template& step);

// Steps done between two instants, counted by the kernel time that is behind them.
double steps_between(const std::vector<Mark>& marks, Nanoseconds from, Nanoseconds to);

}  // namespace joulediff::attribute
