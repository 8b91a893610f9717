// What the simulated GPU is given to do.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace joulediff::simulate {

// A distinct operator: what one execution takes and draws above static power, at boost clocks, with
// its inputs warm in cache.
struct Operator {
  std::string name;  // "nccl..." is communication: where nothing else runs, the board waits
  double seconds = 0;
  double joules = 0;          // dynamic
  int kernels = 1;            // of equal length
  int calls = 1;              // in a step, one after another
  int stream = 0;             // on another than its predecessor's it starts beside that one
  double compute_bound = 1;   // share of its time that a lower SM clock stretches
  double cold = 0;            // in the program, where caches are cold: relative, of its joules
  double cold_time = 0;       // the same, of its time
  double operand_spread = 0;  // relative deviation between calls with other operands
};

struct Program {
  std::string name = "program";
  std::vector<Operator> operators;  // a layer, in order
  int layers = 1;                   // in a step
  double launch_gap = 5e-6;         // seconds between kernels of a stream
  double gap_spread = 0.3;          // of its logarithm
  double pause = 0;                 // seconds between steps, in which nothing is launched
  double pause_jitter = 0;          // relative, uniform
  double seconds = 5;               // of the trace
};

// One line, where the program makes no sense.
Status check(const Program& program);

// As long as the step: `duty` of the period busy, at the board's watts above static.
Program square_wave(double period, double duty, double dynamic_watts, double seconds);

// A layer of a transformer: matrix products, attention, norms, and pauses of the host.
Program transformer(double dynamic_watts, double seconds);

}  // namespace joulediff::simulate
