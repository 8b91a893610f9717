#include "attribute/regression.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "meter/spread.h"

namespace joulediff::attribute {
namespace {

constexpr double kNormal = 1.96;
constexpr int kSweeps = 1000;
constexpr double kStill = 1e-9;  // relative change of a sweep that ends them
constexpr int kRounds = 4;       // of finding the scatter

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// The least of x'Ax/2 - b'x with x >= low, coordinate by coordinate: A is positive definite, so
// each sweep descends and the only point at rest is the solution.
VectorXd bounded(const MatrixXd& a, const VectorXd& b, const VectorXd& low, VectorXd x) {
  if ((x.array() >= low.array()).all()) return x;
  x = x.cwiseMax(low);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (Index i = 0; i < x.size(); ++i) {
      const double next = std::max(low(i), x(i) + (b(i) - a.row(i).dot(x)) / a(i, i));
      moved = std::max(moved, std::abs(next - x(i)));
      x(i) = next;
    }
    if (moved <= kStill) break;
  }
  return x;
}

}  // namespace

Fit regress(std::span<const Observation> observations, std::span<const Belief> prior,
            std::size_t sources, double least_scatter) {
  const auto unknowns = static_cast<Index>(prior.size());
  const auto count = static_cast<Index>(observations.size());
  Fit fit{{prior.begin(), prior.end()},
          std::vector<double>(sources, 1),
          std::vector<double>(sources, 0),
          0};
  if (unknowns == 0 || count == 0) return fit;

  // In units of the prior's deviations all unknowns are alike, and the matrix is well scaled.
  VectorXd unit(unknowns), before(unknowns), low(unknowns);
  for (Index j = 0; j < unknowns; ++j) {
    const Belief& one = prior[static_cast<std::size_t>(j)];
    unit(j) = std::max(one.half_width / kNormal, 1e-12);
    before(j) = one.value / unit(j);
    low(j) = one.may_be_negative ? -std::numeric_limits<double>::infinity() : 0;
  }
  MatrixXd amounts(count, unknowns);
  VectorXd values(count), said(count);
  for (Index k = 0; k < count; ++k) {
    const Observation& one = observations[static_cast<std::size_t>(k)];
    for (Index j = 0; j < unknowns; ++j)
      amounts(k, j) = one.amounts[static_cast<std::size_t>(j)] * unit(j);
    values(k) = one.value;
    said(k) = std::pow(std::max(one.deviation, 1e-12), -2);
  }

  MatrixXd covariance;
  VectorXd found = before;
  std::vector<double> free(sources, 0), number(sources, 0), squares(sources, 0);
  for (const Observation& one : observations) number[one.source] += 1;
  for (int round = 0; round < kRounds; ++round) {
    VectorXd weights(count);
    for (Index k = 0; k < count; ++k)
      weights(k) =
          said(k) / std::pow(fit.scatter[observations[static_cast<std::size_t>(k)].source], 2);
    MatrixXd a = amounts.transpose() * weights.asDiagonal() * amounts;
    a.diagonal().array() += 1;
    const VectorXd b = amounts.transpose() * weights.cwiseProduct(values) + before;
    const Eigen::LLT<MatrixXd> factor(a);
    covariance = factor.solve(MatrixXd::Identity(unknowns, unknowns));
    found = bounded(a, b, low, factor.solve(b));
    // What a source's readings leave, for each of them that the unknowns did not use up.
    const VectorXd rest = values - amounts * found;
    const VectorXd used = (amounts * covariance).cwiseProduct(amounts).rowwise().sum();
    squares.assign(sources, 0);
    std::vector<double> products(sources, 0);
    std::vector<std::optional<double>> last_rest(sources);
    free = number;
    for (Index k = 0; k < count; ++k) {
      const std::size_t source = observations[static_cast<std::size_t>(k)].source;
      squares[source] += rest(k) * rest(k) * said(k);
      const double unit_rest = rest(k) * std::sqrt(said(k));
      products[source] += unit_rest * last_rest[source].value_or(0);
      last_rest[source] = unit_rest;
      free[source] -= std::min(1.0, used(k) * weights(k));
    }
    for (std::size_t s = 0; s < sources; ++s)
      if (number[s] > 0)
        fit.scatter[s] = std::max(least_scatter, std::sqrt(squares[s] / std::max(1.0, free[s])));
    for (std::size_t s = 0; s < sources; ++s)
      if (squares[s] > 0) fit.correlation[s] = products[s] / squares[s];
  }
  // The scatter of few readings is itself uncertain.
  double freedom = 0;
  for (std::size_t s = 0; s < sources; ++s) {
    freedom += std::max(0.0, free[s]);
    fit.misfit +=
        2 * number[s] * std::log(fit.scatter[s]) + squares[s] / (fit.scatter[s] * fit.scatter[s]);
  }
  for (const Observation& one : observations)
    fit.misfit += 2 * std::log(std::max(one.deviation, 1e-12));
  const double quantile = meter::student_t(static_cast<std::size_t>(std::max(1.0, freedom)) + 1);
  for (Index j = 0; j < unknowns; ++j) {
    Belief& one = fit.unknowns[static_cast<std::size_t>(j)];
    one.value = found(j) * unit(j);
    one.half_width = std::min(one.half_width, quantile * std::sqrt(covariance(j, j)) * unit(j));
  }
  return fit;
}

}  // namespace joulediff::attribute
