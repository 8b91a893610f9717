#include "diagnose/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <boost/math/distributions/complement.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace joulediff::diagnose {
namespace {

constexpr double kSmallestTail = 1e-300;

}  // namespace

double student_quantile(double alpha, double freedom) {
  const double tail = std::max(alpha / 2, kSmallestTail);
  if (std::isinf(freedom)) return quantile(complement(boost::math::normal(), tail));
  return quantile(complement(boost::math::students_t(freedom), tail));
}

double student_tail(double t, double freedom) {
  const double size = std::abs(t);
  if (std::isinf(size)) return 0;
  if (std::isinf(freedom)) return 2 * cdf(complement(boost::math::normal(), size));
  return 2 * cdf(complement(boost::math::students_t(freedom), size));
}

std::vector<double> holm_levels(const std::vector<double>& p, double alpha) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return std::pair(p[i], i) < std::pair(p[j], j); });
  std::vector<double> levels(p.size());
  bool failed = false;
  double level = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (!failed) level = alpha / static_cast<double>(p.size() - k);
    failed = failed || p[order[k]] > level;
    levels[order[k]] = level;
  }
  return levels;
}

}  // namespace joulediff::diagnose
