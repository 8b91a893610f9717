// Joules of operators that were not replayed.
//
// Where replays cover most of the time, the rest draws what the replayed ones do, by its time.
// Where they do not (a program that nobody attended, a recording without replay), the trace's own
// readings tell how the board's power goes with what runs (`fitted.h`): then the ledger's operators
// have seen the total, `unattributed` is what the fit left, and a note says so.
#pragma once

#include <vector>

#include "attribute/ledger.h"
#include "attribute/recognise.h"
#include "attribute/timeline.h"
#include "base/diagnostics.h"
#include "meter/meter.h"
#include "run/model.h"

namespace joulediff::attribute {

struct Traced {
  const run::Run& run;
  const run::Block& block;
  const run::KernelSeries& trace;
  const Recognition& recognition;
  const meter::Meter& meter;
  const meter::Reading& reading;  // of the trace
  const meter::StaticPower& floor;
  const Timeline& spent;  // over the reading
  double step = 0;        // seconds
};

// Fills in the units that ran and are not known.
void estimate(const Traced& traced, std::vector<UnitCost>& units, Diagnostics& diagnostics);

}  // namespace joulediff::attribute
