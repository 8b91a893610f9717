#include "meter/power_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace joulediff::meter {
namespace {

// Of the shape's deviations: they are at least what is said of them beforehand.
constexpr double kLeastFactor = 1, kMostFactor = 1e3, kStep = 1.25;

// The walk begins at the first tick, where there is one.
Walk smooth(const std::vector<WalkStep>& steps, const std::vector<double>& sum,
            const std::vector<WalkTick>& ticks, double factor) {
  const std::size_t nodes = steps.size() + 1;
  Walk all{std::vector<double>(nodes), std::vector<double>(nodes), std::vector<double>(nodes), 0};
  std::vector<double> before(nodes);  // variance predicted
  auto tick = ticks.begin();
  double off = 0, variance = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    if (i > 0) variance += factor * factor * steps[i - 1].variance + steps[i - 1].fixed;
    before[i] = variance;
    if (tick != ticks.end() && tick->node == i) {
      const double noise = tick->deviation * tick->deviation;
      const double rest = tick->joules - sum[i] - off;
      if (i == 0) {
        off = rest;
        variance = noise;
      } else {
        all.misfit += rest * rest / (variance + noise) + std::log(variance + noise);
        const double gain = variance / (variance + noise);
        off += gain * rest;
        variance *= 1 - gain;
      }
      ++tick;
    }
    all.off[i] = off;
    all.variance[i] = variance;
  }
  for (std::size_t i = nodes - 1; i-- > 0;) {
    const double carried = before[i + 1] > 0 ? all.variance[i] / before[i + 1] : 1;
    all.carried[i] = carried;
    all.off[i] += carried * (all.off[i + 1] - all.off[i]);
    all.variance[i] += carried * carried * (all.variance[i + 1] - before[i + 1]);
  }
  return all;
}

double likeliest(const std::vector<WalkStep>& steps, const std::vector<double>& sum,
                 const std::vector<WalkTick>& ticks) {
  double best = 1, least = std::numeric_limits<double>::infinity();
  for (double factor = kLeastFactor; factor <= kMostFactor; factor *= kStep)
    if (const double here = smooth(steps, sum, ticks, factor).misfit; here < least) {
      least = here;
      best = factor;
    }
  return best;
}

}  // namespace

Walk closed(const std::vector<WalkStep>& steps, const std::vector<double>& sum,
            std::vector<WalkTick> ticks) {
  constexpr int kRounds = 60;
  const double factor = ticks.size() < 3 ? 1 : likeliest(steps, sum, ticks);
  Walk all = smooth(steps, sum, ticks, factor);
  for (int round = 0; round < kRounds; ++round) {
    bool whole = true;
    for (WalkTick& one : ticks)
      if (std::abs(one.joules - sum[one.node] - all.off[one.node]) > one.limit) {
        one.deviation *= 0.7;
        whole = false;
      }
    if (whole) break;
    all = smooth(steps, sum, ticks, factor);
  }
  return all;
}

void make_monotone(std::vector<double>& joules, const std::vector<double>& variance) {
  struct Pool {
    double mean = 0, weight = 0;
    std::size_t size = 1;
  };
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < joules.size(); ++i) {
    pools.push_back({joules[i], 1 / (variance[i] + 1e-9)});
    while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& one = pools.back();
      one.mean = (one.mean * one.weight + last.mean * last.weight) / (one.weight + last.weight);
      one.weight += last.weight;
      one.size += last.size;
    }
  }
  std::size_t next = 0;
  for (const Pool& one : pools)
    for (std::size_t i = 0; i < one.size; ++i) joules[next++] = one.mean;
}

}  // namespace joulediff::meter
