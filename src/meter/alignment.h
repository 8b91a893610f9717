// When an outside meter's readings were true. Its clock is not ours, its readings come late, and
// each is a mean over some time; the edges of the load, which both sides see, tell by how much.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "run/model.h"

namespace joulediff::meter {

// What the machine did, on its own clock: a function of time that is constant between its changes.
class Load {
 public:
  // 1 while the device is busy, 0 otherwise. The intervals are in order.
  static Load busy(std::span<const std::pair<Nanoseconds, Nanoseconds>> intervals);
  // What the series of a source show together (boards of a host); each reading stands for the time
  // since the one before it. Of a counter, what it counted over that time.
  static Load drawn(const std::vector<run::Series>& all, run::Source source);

  bool empty() const { return cells_.empty(); }
  Nanoseconds begin() const { return begin_; }
  Nanoseconds end() const;
  // Its mean over a window; before its begin and after its end it is as it was there.
  double mean(Nanoseconds from, Nanoseconds to) const;

 private:
  void add(Nanoseconds from, Nanoseconds to, double value);
  void finish();
  double integral(Nanoseconds time) const;

  Nanoseconds begin_ = 0;
  std::vector<double> cells_;     // mean over each cell
  std::vector<double> integral_;  // up to the begin of each cell, in cells
};

struct Estimate {
  Nanoseconds value = 0, low = 0, high = 0;  // 95 %
};

struct Alignment {
  Estimate offset;  // of a reading's stamp after the end of the time that it is a mean over
  Estimate window;  // how long that time is
  Estimate delay;   // offset + window / 2: what to take off the stamps; known best
};

// None where the load's edges do not tell: it has none, or comes in periods, or the readings do not
// follow it. Offsets up to `reach` to both sides are tried.
std::optional<Alignment> align(const run::Series& outside, const Load& load,
                               Nanoseconds reach = 5'000'000'000);

}  // namespace joulediff::meter
