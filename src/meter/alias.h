// Which periods of a load a sensor misreads. A sensor that looks for a part of the time, at a beat
// of its own, sees the same phase of a load in step with it again and again.
#pragma once

#include <vector>

#include "meter/sensor.h"

namespace joulediff::meter {

// Equal pulses of load, one every `period`.
struct Pulses {
  Nanoseconds begin = 0, end = 0;  // of the first and the last
  std::size_t count = 0;
  double period = 0, length = 0;  // seconds
};
// The stretches of the load that are such: a dozen pulses, and a second and a half, at least.
std::vector<Pulses> pulses(const Intervals& busy);

struct Alias {
  double period = 0, length = 0;  // of the pulses
  bool in_step = false;           // the sensor's updates fall on few phases of the period
  // Joules of one pulse above idle as read here, against those read of the same pulses at periods
  // that are not in step: +0.1 is a tenth too much.
  Property misread;
};
// Of a power, or of a counter's powers(). `settle`: seconds that a reading looks back.
std::vector<Alias> aliases(const Updates& readings, const Intervals& busy, double settle);

}  // namespace joulediff::meter
