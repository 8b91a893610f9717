// A recording of a program on a board with its sensors, as the recorder would have made it, and
// beside it the truth: what every operator, every line of the ledger and every window really cost.
#pragma once

#include <string>
#include <vector>

#include "simulate/board.h"
#include "simulate/program.h"
#include "simulate/sensors.h"

namespace joulediff::simulate {

// How long each pass takes, seconds. 0: the pass is left out.
struct Passes {
  int order_steps = 3;
  double static_window = 2;
  double idle_window = 2;
  double replay = 2;             // of each distinct operator
  double replayed_share = 0.95;  // of kernel time, the costliest operators first
  double replay_gap = 2e-6;      // between executions
};

struct OperatorTruth {
  std::string name;
  double calls = 0;    // a step
  double seconds = 0;  // a step, of its kernels
  double dynamic = 0;  // joules a step, above static power
  double total = 0;    // with static power over its share of busy time
  bool replayed = false;
};

struct WindowTruth {
  std::string name;  // "trace", "static", "idle", "replay of X"
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  double joules = 0;
};

struct Truth {
  std::vector<OperatorTruth> operators;  // in the order of the run's first layer
  std::array<double, kLines> lines{};    // joules a step, indexed by Line
  double held_back = 0;  // joules a step that the board's capacitors took or gave: unattributed
  double total = 0;      // joules a step; the lines and what was held back
  double step = 0;       // seconds
  double busy = 0;       // seconds a step
  std::size_t steps = 0;
  double gain = 1;  // of the energy counter: a systematic error, stated apart
  std::vector<WindowTruth> windows;
};
std::string_view name(Line line);

struct Recording {
  run::Run run;
  Truth truth;
  History history;
  // Operators of the run -> of the truth and of the program.
  std::vector<std::size_t> origin;
};

// The program, board and passes make sense (check()).
Recording record(const Program& program, const BoardModel& board, const Sensors& sensors,
                 const Passes& passes, std::uint64_t seed);

// joulediff.truth/1
std::string truth_json(const Truth& truth);

}  // namespace joulediff::simulate
