// A board's power over time: one curve out of its counter, its ring of samples and its fields. The
// counter is right in the long run and says nothing of what is within its ticks; the others say
// that and are off by some percent. So the curve has their shape and the counter's joules: between
// two ticks its energy is the counter's difference, exactly.
#pragma once

#include <optional>
#include <vector>

#include "meter/meter.h"

namespace joulediff::meter {

class PowerCurve {
 public:
  struct Cell {
    Nanoseconds begin = 0, end = 0;
    double watts = 0;
    double half_width = 0;  // 95 %
  };

  const std::vector<Cell>& cells() const { return cells_; }
  const std::vector<Nanoseconds>& ticks() const { return ticks_; }
  // Between two instants inside the curve; none where they are not. What lies between ticks is
  // estimated; whole intervals between them are measured.
  std::optional<Energy> energy(Nanoseconds from, Nanoseconds to) const;

 private:
  friend std::optional<PowerCurve> power_curve(const Meter&, const run::Block&, Nanoseconds,
                                               Nanoseconds);
  std::vector<Nanoseconds> ticks_;
  std::vector<double> uncertainty_;  // of the ticks, seconds
  std::vector<Cell> cells_;          // none lies across a tick
};

// Of one board, over the longest stretch inside [begin, end] in which its counter is whole. None
// where that has fewer than kMinimumTicks ticks, or the meter is not one board's counter.
std::optional<PowerCurve> power_curve(const Meter& meter, const run::Block& block,
                                      Nanoseconds begin, Nanoseconds end);

}  // namespace joulediff::meter
