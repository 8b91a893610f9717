// The ratio of two measured quantities, with its interval, and what may be said of it.
#pragma once

#include <optional>

#include "diagnose/compare.h"
#include "diagnose/costs.h"

namespace joulediff::diagnose {

constexpr double kThreshold = 0.10;  // of (b-a)/max(a,b)
constexpr double kAlpha = 0.05;

class Ratio {
 public:
  Ratio(const Measured& a, const Measured& b);

  // (b-a)/max(a,b) with its interval of confidence 1 - alpha.
  Difference difference(double alpha) const;
  // (b-a)/a, for gates.
  Difference growth(double alpha) const;
  // How likely so large a difference is where the true one is at most `kThreshold`.
  double p_value() const;
  // The largest relative difference between two blocks of one side; none unless both sides have
  // two.
  std::optional<double> noise_floor() const { return floor_; }

 private:
  enum class Shape { both, only_a, only_b, neither, unknown };
  double half_width(double alpha) const;

  Shape shape_ = Shape::unknown;
  double log_ = 0;      // ln(b/a)
  double between_ = 0;  // standard error of log_ from the spread between blocks
  double within_ = 0;   // and from the intervals of the blocks themselves
  double freedom_ = 0;  // of between_; 0: not known
  std::optional<double> floor_;
};

}  // namespace joulediff::diagnose
