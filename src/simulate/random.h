// Draws that are the same on every machine: the standard's distributions are not.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace joulediff::simulate {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // One that does not depend on how often this one is asked afterwards.
  Random fork() { return Random(engine_()); }

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  int between(int low, int high) {  // both included
    return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  double normal(double mean, double deviation) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(0, 1)));
    return mean + deviation * radius * std::cos(2 * std::numbers::pi * uniform(0, 1));
  }
  // Its logarithm is normal: half of the draws are below the median.
  double lognormal(double median, double deviation) {
    return median * std::exp(normal(0, deviation));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace joulediff::simulate
