// What a machine did, as a function of time, and readings of a sensor held against it: each reading
// is taken as a + b x (mean of the load over a window that ended some time before its stamp).
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "run/model.h"

namespace joulediff::meter {

using Intervals = std::vector<std::pair<Nanoseconds, Nanoseconds>>;

// Constant within its cells.
class Load {
 public:
  static constexpr Nanoseconds kCell = 5'000'000;
  Load() : Load(kCell) {}
  // 1 while the device is busy, 0 otherwise. The intervals are in order.
  static Load busy(std::span<const std::pair<Nanoseconds, Nanoseconds>> intervals,
                   Nanoseconds cell = kCell);
  // What the series of a source show together (boards of a host); each reading stands for the time
  // since the one before it. Of a counter, what it counted over that time.
  static Load drawn(const std::vector<run::Series>& all, run::Source source,
                    Nanoseconds cell = kCell);

  bool empty() const { return cells_.empty(); }
  Nanoseconds begin() const { return begin_; }
  Nanoseconds end() const;
  // Its mean over a window; before its begin and after its end it is as it was there.
  double mean(Nanoseconds from, Nanoseconds to) const;

 private:
  explicit Load(Nanoseconds cell) : cell_(cell) {}
  void add(Nanoseconds from, Nanoseconds to, double value);
  void finish();
  double integral(Nanoseconds time) const;

  Nanoseconds cell_;
  Nanoseconds begin_ = 0;
  std::vector<double> cells_;     // mean over each cell
  std::vector<double> integral_;  // up to the begin of each cell, in cells
};

// What is held against the load, with its mean and its sum of squares about that.
struct Readings {
  std::vector<Nanoseconds> time;
  std::vector<double> value;
  double mean = 0, squares = 0;
  void add(Nanoseconds at, double reading);
  void finish();
};

struct Fit {
  Nanoseconds offset = 0, window = 0;  // [stamp - offset - window, stamp - offset]
  double error = 0;                    // sum of squares that is left
  double slope = 0, intercept = 0;     // b and a; 0: the readings do not rise with the load
  double spread = 0;                   // of the load's means: their sum of squares
};

// By least squares.
Fit fit(const Readings& readings, const Load& load, Nanoseconds offset, Nanoseconds window);

// How many independent readings the residuals amount to, from their correlation with the next.
double independent(const Readings& readings, const Load& load, const Fit& best);

// Fits with errors up to this are not significantly worse than the best (95 %, one parameter).
// `exact` is the error below which the grid of what was tried decides, not noise.
double error_limit(const Fit& best, double independent_readings, double exact);

}  // namespace joulediff::meter
