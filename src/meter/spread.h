// Intervals from repeats: Student's t over values that were measured apart.
#pragma once

#include <span>
#include <vector>

#include "base/energy.h"

namespace joulediff::meter {

// The two-sided 95 % quantile of Student's t for the mean of `repeats` values; at least 2.
double student_t(std::size_t repeats);

double mean(std::span<const double> values);

// The upper one of the middle two; of at least one value.
double median(std::vector<double> values);

// Half width (95 %) of the mean of `values`, beyond what `variance_of_each` already explains.
// 0 for fewer than two values: nothing is known of their spread.
double spread_of_mean(std::span<const double> values, double variance_of_each = 0);

// Mean of repeated energies. Its half width is the larger of what each repeat says of itself and
// what their spread says.
Energy mean(std::span<const Energy> repeats);

}  // namespace joulediff::meter
