// What the same work costs at another SM clock.
//
// Dynamic energy goes with the square of the voltage, and the voltage rises with the clock, at most
// in proportion: the energy of one execution goes with the clock to a power between 0 and 2, on an
// H200 to that of 0.75. Where operators were replayed while their clock moved (a power cap does
// that), the recording itself narrows the exponent, within the clocks that were seen; beyond them
// 0.75 +- 0.75 stays.
#pragma once

#include "attribute/replay.h"
#include "meter/meter.h"
#include "run/model.h"

namespace joulediff::attribute {

class ClockScaling {
 public:
  // `floor`: what is not dynamic.
  ClockScaling(const run::Block& block, const Replayed& replays, Watts floor);

  // What dynamic energy at `from` MHz is to be multiplied with at `to`, and its half width (95 %).
  struct Factor {
    double value = 1;
    double half_width = 0;
  };
  Factor factor(double from, double to) const;

 private:
  double exponent_ = 0.75, half_width_ = 0.75;
  double low_ = 0, high_ = 0;  // MHz: where it was seen
};

}  // namespace joulediff::attribute
