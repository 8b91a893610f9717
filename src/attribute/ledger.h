// From what a step was and what one execution costs to the ledger of a block.
#pragma once

#include <vector>

#include "attribute/attribute.h"
#include "attribute/launch.h"
#include "attribute/timeline.h"
#include "meter/meter.h"

namespace joulediff::attribute {

// One execution of an operator above static power, with its error by origin: operators of the same
// `group` are wrong by the same factor, `common` is shared by all, and `static_seconds` is how far
// an error of the static power carries over.
struct UnitCost {
  bool known = false;
  double joules = 0;
  double half_width = 0;
  double common = 0;
  double static_seconds = 0;
  std::size_t group = 0;
  Standing standing = Standing::replayed;
};

// What one step was, read off without any operator's energy. Seconds per step; none: the meter does
// not tell this time apart, or its static power is not known.
struct StepView {
  Energy total;
  double step = 0;
  std::optional<double> busy;
  std::optional<double> waiting;
  std::optional<double> launch_gap;
  std::optional<double> idle;
  std::optional<double> overlapped;  // where several kernels ran at once
  std::optional<double> busy_time;
  std::vector<Usage> usage;             // by operator, per step
  Standing floor = Standing::measured;  // of the static power
};

BlockCosts costs(const StepView& view, const std::vector<UnitCost>& units,
                 const meter::StaticPower& static_power, const meter::Meter& meter);

// The sum of the costs of devices or hosts. What an operator costs is known if it is on each of
// them that ran it; a line that one of them does not know is not known.
void add(BlockCosts& sum, const BlockCosts& other);

// Every view is of the trace pass of one launch; none where it is too short for the meter.
struct BlockView {
  StepView step;
  std::vector<UnitCost> units;
  meter::StaticPower static_power;
  double recognised = 1;
  meter::Reading reading;  // of the trace
};
std::optional<BlockView> view_board(const run::Run& run, const DeviceShare& share,
                                    const meter::Meter& meter, Diagnostics& diagnostics);
std::optional<BlockView> view_host(const run::Run& run, const HostShare& share,
                                   const meter::Meter& meter, Diagnostics& diagnostics);

// The host's side of a run whose device decides: what a step of that length cost the host, and no
// line of it.
std::optional<StepView> view_beside(const run::Block& block, const meter::Meter& meter,
                                    Seconds step, Diagnostics& diagnostics);

}  // namespace joulediff::attribute
