#include "attribute/slowdown.h"

#include <algorithm>
#include <cmath>

namespace joulediff::attribute {
namespace {

// Between two kernels of a graph on an H200: 1 to 3 us, seconds.
constexpr double kShortestGap = 1e-6, kLongestGap = 3e-6;
// Launched one by one they follow within this; what seems longer is no gap.
constexpr double kMostGap = 10e-6;
// The clock of two passes agrees to within this (NVML tells it in steps of 15 MHz), relative.
constexpr double kSameClock = 0.005;
// Before the times are looked at: closures of a GPT-2 in three settings left 1.2 to 2.8 % of joules
// to caches, and joules go with time (caches.cpp).
constexpr double kBefore = 0.01, kBeforeHalfWidth = 0.02;

}  // namespace

std::vector<std::optional<Slowdown>> slowdowns(std::span<const std::optional<Timing>> timings) {
  // What a replay takes longer is gap, but for what clocks may differ by.
  const auto excess = [](const Timing& one) {
    return one.in_replay - (1 + kSameClock) * one.in_program;
  };
  double least = kShortestGap;
  for (const auto& one : timings)
    if (one && one->kernels < 1.5) least = std::max(least, std::min(excess(*one), kMostGap));
  const double most = std::max(least, kLongestGap);

  std::vector<std::optional<Slowdown>> result(timings.size());
  for (std::size_t i = 0; i < timings.size(); ++i) {
    if (!timings[i] || timings[i]->in_program <= 0) continue;
    const Timing& one = *timings[i];
    // One gap for each execution at least, and for each kernel at most.
    const double gaps = std::max(1.0, one.kernels);
    const double low = std::clamp(excess(one), least, kMostGap * gaps);
    const double high = std::max(low, gaps * most);
    const double gap = (low + high) / 2;
    const double alone = one.in_replay - gap;
    if (alone <= 0) continue;
    const double seen = one.in_program / alone - 1;
    const double seen_half = std::hypot((high - low) / 2 / alone, kSameClock);
    // Both are about normal: weighted by their precision. Caches save nothing.
    const double before = std::pow(kBeforeHalfWidth, -2), now = std::pow(seen_half, -2);
    const double mean = (kBefore * before + seen * now) / (before + now);
    result[i] = Slowdown{std::max(0.0, mean), 1 / std::sqrt(before + now)};
  }
  return result;
}

}  // namespace joulediff::attribute
