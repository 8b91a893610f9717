// Joules for every operator, and the ledger that says where each measured joule went.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/energy.h"
#include "base/result.h"
#include "meter/meter.h"
#include "run/model.h"

namespace joulediff::attribute {

enum class Line { operators, static_busy, launch_gap, waiting, idle, overlap, unattributed };
constexpr std::size_t kLines = 7;
std::string_view name(Line line);  // "operators", "static", "launch_gap", ...

// One boundary's energy for one step of the run. Every line but the last is computed without sight
// of the total; the last is what remains, signed. A line that this boundary's meter cannot tell
// apart is none, never 0; its joules are in the last. The known lines sum to `total`.
struct Ledger {
  Boundary boundary = Boundary::board;
  meter::Meter meter;
  Energy total;                                       // per step
  std::array<std::optional<Energy>, kLines> lines{};  // per step, indexed by Line
  Seconds step_time;                                  // wall time of a step in the trace pass
  std::optional<Seconds> busy_time;                   // union of kernel time of a step

  const std::optional<Energy>& line(Line which) const {
    return lines[static_cast<std::size_t>(which)];
  }
};

// What one operator costs in one step.
struct OperatorCost {
  Energy dynamic;   // above static power
  Energy total;     // dynamic + static power over its share of busy time
  Seconds seconds;  // its kernels' time (host time where there is no device)
  bool known = false;
};

// What was read of one channel of the meter that decides.
struct Window {
  std::string host;
  std::string channel;
  meter::Reading reading;
};

// Of one launch, all its ranks, devices and hosts.
struct BlockCosts {
  std::uint32_t order = 0;
  std::vector<OperatorCost> operators;  // index: run::OperatorId
  std::optional<Ledger> ledger;
  std::vector<Ledger> beside;
  std::vector<Window> windows;  // of the trace, one for each device or host
};

struct Attribution {
  meter::Meter meter;
  std::vector<OperatorCost> operators;  // mean over the blocks
  Ledger ledger;                        // mean over the blocks, of the boundary that decides
  std::vector<Ledger> beside;           // of the run's other meters: in no verdict, no ratio
  std::vector<BlockCosts> blocks;       // the A/A spread of anything is taken over these
  double recognised = 0;                // share of trace kernel time recognised; 1 without kernels
  Energy per_work_unit;                 // ledger.total / work_of_step
  Diagnostics diagnostics;
};

Result<Attribution> attribute(const run::Run& run);

// What a step of a launch does: each rank does the manifest's work, unless the fact
// `work_is_global` says that it is that of all ranks together.
double work_of_step(const run::Run& run);

}  // namespace joulediff::attribute
