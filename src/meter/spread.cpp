#include "meter/spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <boost/math/distributions/students_t.hpp>

#include "base/check.h"

namespace joulediff::meter {

double student_t(std::size_t repeats) {
  JD_CHECK(repeats >= 2);
  const boost::math::students_t distribution(static_cast<double>(repeats - 1));
  return boost::math::quantile(distribution, 0.975);
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  JD_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double spread_of_mean(std::span<const double> values, double variance_of_each) {
  if (values.size() < 2) return 0;
  const double n = static_cast<double>(values.size());
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  const double variance = std::max(0.0, squares / (n - 1) - variance_of_each);
  return variance == 0 ? 0 : student_t(values.size()) * std::sqrt(variance / n);
}

Energy mean(std::span<const Energy> repeats) {
  JD_CHECK(!repeats.empty());
  Energy sum = repeats.front();
  std::vector<double> values{repeats.front().joules.value};
  for (const Energy& repeat : repeats.subspan(1)) {
    sum = sum + repeat;
    values.push_back(repeat.joules.value);
  }
  Energy result = sum / static_cast<double>(repeats.size());
  const Joules between(spread_of_mean(values));
  result.low = std::min(result.low, result.joules - between);
  result.high = std::max(result.high, result.joules + between);
  return result;
}

}  // namespace joulediff::meter
