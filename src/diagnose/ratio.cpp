// Differences are judged on the logarithm of b/a: its error is symmetric, swapping the sides only
// turns its sign, and (b-a)/max(a,b) is a monotone function of it, so that the ends of the interval
// map to the ends of the interval. The spread of both sides is pooled (as relative spread), which
// leaves two degrees of freedom where a pair has two blocks a side. A side that does nothing is
// exactly zero: then the difference is +-1, provided that the other side is above its own error.
#include "diagnose/ratio.h"

#include <algorithm>
#include <cmath>

#include "diagnose/statistics.h"

namespace joulediff::diagnose {
namespace {

double relative(double log_ratio) {
  return log_ratio > 0 ? -std::expm1(-log_ratio) : std::expm1(log_ratio);
}

double squared_deviations(const Measured& side) {
  double squares = 0;
  for (const double x : side.blocks) squares += (x / side.mean - 1) * (x / side.mean - 1);
  return squares;
}

double spread(const std::vector<double>& blocks) {
  const auto [low, high] = std::minmax_element(blocks.begin(), blocks.end());
  return *high > 0 ? (*high - *low) / *high : 1;
}

bool is_zero(const Measured& side) {
  return side.mean == 0 && side.within == 0;
}

bool is_positive(const Measured& side) {
  return side.energy().low.value > 0;
}

}  // namespace

Ratio::Ratio(const Measured& a, const Measured& b) {
  const bool controlled = a.blocks.size() > 1 && b.blocks.size() > 1;
  if (is_zero(a) && is_zero(b)) {
    shape_ = Shape::neither;
    if (controlled) floor_ = 0;
  } else if (is_zero(a) || is_zero(b)) {
    const Measured& one = is_zero(a) ? b : a;
    if (is_positive(one)) shape_ = is_zero(a) ? Shape::only_b : Shape::only_a;
    if (controlled) floor_ = spread(one.blocks);
  } else if (a.mean > 0 && b.mean > 0) {
    shape_ = Shape::both;
    log_ = std::log(b.mean / a.mean);
    within_ = std::hypot(a.within / a.mean, b.within / b.mean);
    if (controlled) floor_ = std::max(spread(a.blocks), spread(b.blocks));
    if (a.blocks.empty() || b.blocks.empty()) return;
    // A side of one block has the spread of the other, since nothing is known of its own.
    const auto n = static_cast<double>(a.blocks.size());
    const auto m = static_cast<double>(b.blocks.size());
    freedom_ = n + m - 2;
    if (freedom_ == 0) return;
    const double variance = (squared_deviations(a) + squared_deviations(b)) / freedom_;
    between_ = std::sqrt(variance * (1 / n + 1 / m));
  }
}

double Ratio::half_width(double alpha) const {
  const double within = within_ * student_quantile(alpha, kNormal);
  return freedom_ > 0 ? std::max(within, between_ * student_quantile(alpha, freedom_)) : within;
}

Difference Ratio::difference(double alpha) const {
  switch (shape_) {
    case Shape::neither: return {0, 0, 0};
    case Shape::only_a: return {-1, -1, -1};
    case Shape::only_b: return {1, 1, 1};
    case Shape::unknown: return {0, -1, 1};
    case Shape::both: break;
  }
  const double half = half_width(alpha);
  return {relative(log_), relative(log_ - half), relative(log_ + half)};
}

Difference Ratio::growth(double alpha) const {
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  switch (shape_) {
    case Shape::neither: return {0, 0, 0};
    case Shape::only_a: return {-1, -1, -1};
    case Shape::only_b: return {kUnbounded, kUnbounded, kUnbounded};
    case Shape::unknown: return {0, -1, kUnbounded};
    case Shape::both: break;
  }
  const double half = half_width(alpha);
  return {std::expm1(log_), std::expm1(log_ - half), std::expm1(log_ + half)};
}

double Ratio::p_value() const {
  if (shape_ == Shape::only_a || shape_ == Shape::only_b) return 0;
  const double excess = std::abs(log_) + std::log1p(-kThreshold);
  if (shape_ != Shape::both || excess <= 0) return 1;
  const auto tail = [&](double error, double freedom) {
    return error > 0 ? student_tail(excess / error, freedom) : 0;
  };
  const double within = tail(within_, kNormal);
  return freedom_ > 0 ? std::max(within, tail(between_, freedom_)) : within;
}

}  // namespace joulediff::diagnose
