#include "attribute/clock_scaling.h"

#include <algorithm>
#include <cmath>

#include "attribute/conditions.h"
#include "meter/spread.h"

namespace joulediff::attribute {
namespace {

// Equal pulses on an H200 cost 14.1 J at 1,500 MHz and 17.3 J at 1,980 MHz: a power of 0.74. Of
// other boards and operators no more is known than that the voltage never falls.
constexpr double kPrior = 0.75, kPriorHalfWidth = 0.75;  // 95 %
constexpr double kNormal = 1.96;
constexpr std::size_t kFewestParts = 3;
constexpr double kMoved = 0.02;  // the clock of an operator's parts, relative

// One operator's parts: how far each is off their mean, as logarithms.
struct Deviation {
  double clock, energy, variance;
};

// Weighted regression through the origin.
struct Slope {
  double xx = 0, xy = 0, yy = 0;
  std::size_t count = 0, operators = 0;

  void add(const Deviation& d) {
    xx += d.clock * d.clock / d.variance;
    xy += d.clock * d.energy / d.variance;
    yy += d.energy * d.energy / d.variance;
    ++count;
  }
  double value() const { return xy / xx; }
  // The larger of what the parts say of themselves and of what their scatter says.
  double half_width() const {
    const std::size_t free = count - operators - 1;
    const double scatter = std::max(0.0, yy - value() * xy) / static_cast<double>(free);
    return meter::student_t(free + 1) * std::sqrt(std::max(1.0, scatter) / xx);
  }
};

std::vector<Deviation> deviations(const run::Block& block, const Execution& one, Watts floor,
                                  double& low, double& high) {
  std::vector<Deviation> all;
  double clocks = 0, energies = 0, slowest = 0, fastest = 0;
  for (const Execution::Part& part : one.parts) {
    const auto clock = mean_over(block, run::Source::nvml_sm_clock, {part.reading});
    const double dynamic = (part.joules - floor * part.seconds).value;
    if (!clock || *clock <= 0 || dynamic <= 0) continue;
    const double sigma = part.half_width.value / dynamic / kNormal;
    all.push_back({std::log(*clock), std::log(dynamic), std::max(sigma * sigma, 1e-6)});
    slowest = all.size() == 1 ? *clock : std::min(slowest, *clock);
    fastest = std::max(fastest, *clock);
    clocks += all.back().clock;
    energies += all.back().energy;
  }
  if (all.size() < kFewestParts || fastest < (1 + kMoved) * slowest) return {};
  for (Deviation& d : all) {
    d.clock -= clocks / static_cast<double>(all.size());
    d.energy -= energies / static_cast<double>(all.size());
  }
  low = low == 0 ? slowest : std::min(low, slowest);
  high = std::max(high, fastest);
  return all;
}

}  // namespace

ClockScaling::ClockScaling(const run::Block& block, const Replayed& replays, Watts floor) {
  Slope slope;
  for (const auto& one : replays.by_signature) {
    if (!one) continue;
    const auto parts = deviations(block, *one, floor, low_, high_);
    for (const Deviation& part : parts) slope.add(part);
    slope.operators += parts.empty() ? 0 : 1;
  }
  if (slope.count < slope.operators + kFewestParts || slope.xx <= 0) {
    low_ = high_ = 0;
    return;
  }
  // Both are about normal: weighted by their precision.
  const double prior = std::pow(kPriorHalfWidth, -2), seen = std::pow(slope.half_width(), -2);
  exponent_ = (kPrior * prior + slope.value() * seen) / (prior + seen);
  half_width_ = 1 / std::sqrt(prior + seen);
}

ClockScaling::Factor ClockScaling::factor(double from, double to) const {
  const auto inside = [&](double clock) { return std::clamp(clock, low_, high_); };
  const double seen = high_ > 0 ? std::log(inside(to) / inside(from)) : 0;
  const double unseen = std::log(to / from) - seen;
  const double value = std::exp(exponent_ * seen + kPrior * unseen);
  return {value, value * std::hypot(half_width_ * seen, kPriorHalfWidth * unseen)};
}

}  // namespace joulediff::attribute
