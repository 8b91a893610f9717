// A board's power over time: one curve out of its energy counter, its ring of samples and its
// fields. The counter is right in the long run and says nothing of what is between its ticks, each
// of which is known to within some milliseconds; the others say that and are off by some percent.
// So the curve has their shape and the counter's joules: over any window between two ticks its
// energy is the counter's difference to within what the two ticks' times are uncertain by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meter/calibrate.h"
#include "meter/meter.h"

namespace joulediff::meter {

// The mean power over a time, with its 95 % interval of repeatability. What it was within the time
// is not known, only its mean.
struct PowerSegment {
  Nanoseconds begin = 0, end = 0;
  bool known = false;                             // nothing was read: no power, which is not 0
  Watts watts{}, low{}, high{};                   // of the mean
  run::Source source = run::Source::nvml_energy;  // whose readings it has its shape from
  Seconds seconds() const { return to_seconds(end - begin); }
};

class PowerCurve {
 public:
  std::size_t block = 0;  // of the run
  Meter meter;            // of one board: its only channel
  bool closed = false;    // some of it against the energy counter
  // In time, each beginning where the one before it ends.
  const std::vector<PowerSegment>& segments() const { return segments_; }

  // Joules between two instants; none where a part of that is unknown. Measured where both are
  // ticks of the counter, else estimated. Within a segment the power may have been anything up to
  // the highest of the curve.
  std::optional<Energy> energy(Nanoseconds from, Nanoseconds to) const;

 private:
  friend class PowerFuser;
  // Joules up to each node, and how sure they are: Rauch, Tung and Striebel's smoother.
  struct Span {
    std::vector<Nanoseconds> node;
    std::vector<double> joules, variance;
    std::vector<double> carried;  // covariance of a node with later ones over the next one's
    std::vector<bool> tick;
    // Variance of the joules between two nodes.
    double between(std::size_t from, std::size_t to) const;
  };
  std::vector<PowerSegment> segments_;
  std::vector<Span> spans_;
  struct Place {
    std::size_t span = 0, from = 0, to = 0;  // nodes
  };
  std::vector<Place> places_;  // of the segments that are known
};

// Of one board (the meter's only channel) over a block. `sensors`: what calibrate() found of it; a
// window or lag that it did not find is that of boards that were measured (docs/power.md).
PowerCurve power_curve(const Meter& meter, const run::Block& block,
                       const std::vector<SensorModel>& sensors);

// Of each board that the run used, or that was read, in each block that has its series.
std::vector<PowerCurve> power_curves(const run::Run& run);

}  // namespace joulediff::meter
