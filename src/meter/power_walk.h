// What a power's shape is off by, as a random walk that an energy counter's ticks are seen of
// (power_curve.cpp says why).
#pragma once

#include <vector>

namespace joulediff::meter {

// Of the walk: from the node before it.
struct WalkStep {
  double joules = 0;
  double variance = 0;  // of the shape's; times the factor squared
  double fixed = 0;     // of the counter's steps
};

// What a tick says: the joules up to a node of the walk, with their standard deviation. They cannot
// be off by more than the limit.
struct WalkTick {
  std::size_t node = 0;
  double joules = 0, deviation = 0, limit = 0;
};

// By node: joules that the shape is off by, their variance, and the covariance with later nodes
// over that of the next one.
struct Walk {
  std::vector<double> off, variance, carried;
  double misfit = 0;  // -2 log likelihood of the ticks
};

// The walk given the ticks, of which it passes each within its limit. `sum`: the shape's joules up
// to each node. Without ticks it is what it was before, 0 at its begin. Joules throughout; Rauch,
// Tung and Striebel 1965, "Maximum likelihood estimates of linear dynamic systems".
Walk closed(const std::vector<WalkStep>& steps, const std::vector<double>& sum,
            std::vector<WalkTick> ticks);

// Joules only grow: the nearest such curve, each node as heavy as it is sure (pool adjacent
// violators; Barlow et al. 1972, "Statistical inference under order restrictions").
void make_monotone(std::vector<double>& joules, const std::vector<double>& variance);

}  // namespace joulediff::meter
