// The few distributions that verdicts need.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace joulediff::diagnose {

constexpr double kNormal = std::numeric_limits<double>::infinity();  // degrees of freedom

// t such that P(|T| > t) = alpha.
double student_quantile(double alpha, double freedom);

// P(|T| > t).
double student_tail(double t, double freedom);

// The level at which each of several tests is judged so that all hold together with `alpha` (Holm):
// the smallest p against alpha / m, the next against alpha / (m - 1), ... until one fails; it and
// those behind it share the level at which it failed.
std::vector<double> holm_levels(const std::vector<double>& p, double alpha);

}  // namespace joulediff::diagnose
