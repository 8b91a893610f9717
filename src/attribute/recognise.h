// Which operator launched each kernel of the trace pass.
#pragma once

#include <string>
#include <vector>

#include "attribute/templates.h"
#include "run/model.h"

namespace joulediff::attribute {

// Where the trace stood: at `time` a kernel began that takes the run from `progress` steps to
// `progress + share` in `seconds`.
struct Mark {
  Nanoseconds time = 0;
  double progress = 0;
  double share = 0;
  double seconds = 0;
};

struct Recognition {
  std::vector<run::OperatorId> op;  // of each trace kernel; none if not recognised
  std::vector<float> calls;         // of its operator that each trace kernel stands for
  std::vector<bool> launches;       // by operator: it launches kernels
  double share = 0;                 // of trace kernel time that has an operator
  std::vector<Mark> marks;          // in time
};

Recognition recognise(const run::Run& run, const run::Block& block, const Templates& templates);

// The names of the kernels that took the most of the time that was not recognised, for people.
std::string unrecognised(const run::Run& run, const run::KernelSeries& trace,
                         const Recognition& recognition);

// Steps done between two instants, counted by the kernel time that is behind them.
double steps_between(const std::vector<Mark>& marks, Nanoseconds from, Nanoseconds to);

}  // namespace joulediff::attribute
