// Power over time, constant between its changes, and what a slow response makes of it.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"

namespace joulediff::simulate {

// First-order responses in a row, each with its time constant in seconds (0: none): what the
// board's capacitors do to its draw, then what a sensor's filter does to that. Both only put off
// joules, they lose none.
struct Response {
  double ramp = 0;
  double lag = 0;
};

class Waveform {
 public:
  explicit Waveform(Nanoseconds begin = 0) : begin_(begin) {}

  // From where it ends up to `until`; nothing where that is not later.
  void add(Nanoseconds until, double watts);

  Nanoseconds begin() const { return begin_; }
  Nanoseconds end() const { return until_.empty() ? begin_ : until_.back(); }

  // Joules since the begin at each of `times`, which rise. Outside it is as at its ends.
  std::vector<double> joules_at(std::span<const Nanoseconds> times, Response response = {}) const;
  double joules(Nanoseconds from, Nanoseconds to, Response response = {}) const;

 private:
  Nanoseconds begin_;
  std::vector<Nanoseconds> until_;
  std::vector<double> watts_;
};

}  // namespace joulediff::simulate
