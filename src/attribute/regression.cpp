#include "attribute/regression.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace joulediff::attribute {
namespace {

constexpr double kNormal = 1.96;
// The windows tell a class apart where they leave at most this part of the prior's half width.
constexpr double kTold = 0.5;
constexpr int kSweeps = 1000;
constexpr double kStill = 1e-9;  // relative change of a sweep that ends them

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// The least of x'Ax/2 - b'x with x >= 0, coordinate by coordinate: A is positive definite, so each
// sweep descends and the only point at rest is the solution.
VectorXd non_negative(const MatrixXd& a, const VectorXd& b, VectorXd x) {
  x = x.cwiseMax(0);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (Index i = 0; i < x.size(); ++i) {
      const double next = std::max(0.0, x(i) + (b(i) - a.row(i).dot(x)) / a(i, i));
      moved = std::max(moved, std::abs(next - x(i)));
      x(i) = next;
    }
    if (moved <= kStill * std::max(1.0, x.maxCoeff())) break;
  }
  return x;
}

}  // namespace

std::vector<ClassPower> regress(std::span<const PowerWindow> windows,
                                std::span<const ClassPower> prior) {
  const auto classes = static_cast<Index>(prior.size());
  const auto count = static_cast<Index>(windows.size());
  std::vector<ClassPower> result(prior.begin(), prior.end());
  for (ClassPower& power : result) power.told = false;
  if (classes == 0 || count == 0) return result;

  MatrixXd seconds(count, classes);
  VectorXd joules(count), weight(count), precision(classes), before(classes);
  for (Index k = 0; k < count; ++k) {
    const PowerWindow& window = windows[static_cast<std::size_t>(k)];
    for (Index j = 0; j < classes; ++j) seconds(k, j) = window.seconds[static_cast<std::size_t>(j)];
    joules(k) = window.joules;
    weight(k) = std::pow(kNormal / std::max(window.half_width, 1e-9), 2);
  }
  for (Index j = 0; j < classes; ++j) {
    const ClassPower& one = prior[static_cast<std::size_t>(j)];
    before(j) = one.watts;
    precision(j) = std::pow(kNormal / std::max(one.half_width, 1e-9), 2);
  }
  const auto solve = [&](const VectorXd& weights, MatrixXd& covariance) {
    MatrixXd a = seconds.transpose() * weights.asDiagonal() * seconds;
    a.diagonal() += precision;
    const VectorXd b =
        seconds.transpose() * weights.cwiseProduct(joules) + precision.cwiseProduct(before);
    const Eigen::LLT<MatrixXd> factor(a);
    covariance = factor.solve(MatrixXd::Identity(classes, classes));
    return non_negative(a, b, factor.solve(b));
  };
  MatrixXd covariance;
  VectorXd watts = solve(weight, covariance);
  // Windows that scatter more than they say of themselves count for less, all alike.
  const VectorXd left = joules - seconds * watts;
  const double scatter = left.cwiseAbs2().dot(weight) / static_cast<double>(count);
  if (scatter > 1) watts = solve(weight / scatter, covariance);

  for (Index j = 0; j < classes; ++j) {
    ClassPower& power = result[static_cast<std::size_t>(j)];
    const double half_width = kNormal * std::sqrt(covariance(j, j));
    power.told = half_width <= kTold * power.half_width;
    power.watts = watts(j);
    power.half_width = half_width;
  }
  return result;
}

}  // namespace joulediff::attribute
