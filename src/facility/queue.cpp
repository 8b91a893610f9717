#include "facility/queue.h"

#include <algorithm>
#include <cmath>

namespace joulediff::facility {

namespace {

// More servers are taken as if they shared their queue with fewer, at the same utilisation: they
// would wait longer, so this errs to the safe side, and it bounds the work.
constexpr double kManyServers = 5000;

bool late(const Queue& queue, double arrivals, std::int64_t servers) {
  return waits_longer(arrivals, queue.rate, static_cast<double>(servers), queue.wait) >
         1 - queue.share;
}

}  // namespace

double waits_longer(double arrivals, double rate, double servers, double t) {
  if (arrivals <= 0) return 0;
  if (arrivals >= servers * rate) return 1;
  const double pool = std::min(servers, kManyServers);
  const double a = arrivals / rate * (pool / servers);
  double b = 1;
  for (double c = 1; c <= pool; ++c) b = a * b / (c + a * b);
  const double all_busy = pool * b / (pool - a * (1 - b));
  return all_busy * std::exp(-(servers * rate - arrivals) * t);
}

std::int64_t groups_needed(const Queue& queue, double arrivals, std::int64_t group) {
  if (arrivals <= 0) return 0;
  // With fewer than a servers the queue grows without end.
  const double a = arrivals / queue.rate / static_cast<double>(group);
  const auto low = static_cast<std::int64_t>(std::floor(std::min(a, 1e12)));
  std::int64_t step = 1;
  while (late(queue, arrivals, (low + step) * group) && step < (std::int64_t{1} << 40)) step *= 2;
  return groups_needed(queue, arrivals, group, low, low + step);
}

std::int64_t groups_needed(const Queue& queue, double arrivals, std::int64_t group,
                           std::int64_t low, std::int64_t high) {
  if (arrivals <= 0) return 0;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (late(queue, arrivals, middle * group) ? low : high) = middle;
  }
  return high;
}

double most_arrivals(const Queue& queue, double servers) {
  double low = 0;
  double high = servers * queue.rate;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    const bool late = waits_longer(middle, queue.rate, servers, queue.wait) > 1 - queue.share;
    (late ? high : low) = middle;
  }
  return low;
}

}  // namespace joulediff::facility
