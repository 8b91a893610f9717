// The shape of a board's power: what its ring and its fields say of each time, before it is held
// against the energy counter.
#pragma once

#include <vector>

#include "meter/calibrate.h"

namespace joulediff::meter {

// The mean power over a time as a sensor has it.
struct ShapePiece {
  Nanoseconds begin = 0, end = 0;
  double watts = 0;
  double rate = 0;  // variance of its joules for each second of it, J^2/s
  run::Source source = run::Source::nvml_power_samples;
};

// In time, none over another: of two sources the finer one. `coarse`: with the one-second mean
// where nothing else is.
struct Shape {
  std::vector<ShapePiece> fine, coarse;
};
Shape power_shape(const run::Block& block, const std::string& channel,
                  const std::vector<SensorModel>& sensors);

}  // namespace joulediff::meter
