// How much of each class of kernels a board did up to given instants, as its sensors would see it.
//
// A kernel of a class does `amount` over its duration, evenly. A board's capacitors (a first-order
// response with time constant t) hold back what was done last: up to an instant they have let out
// the amount that was done less t x (the filtered rate).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/model.h"

namespace joulediff::attribute {

struct Present {
  std::vector<double> amounts;  // by class
  double busy = 0;              // seconds in which anything ran
  double overlapped = 0;        // in which more than one kernel ran
};

class Presence {
 public:
  // By kernel of the trace, which is in order of start: its class, and what it does of that.
  Presence(const run::KernelSeries& trace, std::vector<std::uint32_t> classes,
           std::vector<float> amounts, std::size_t count)
      : trace_(trace), class_(std::move(classes)), amount_(std::move(amounts)), count_(count) {}

  // Since the first kernel, up to each of `times`, which rise. `response` in seconds.
  std::vector<Present> up_to(std::span<const Nanoseconds> times, double response) const;

 private:
  void hold_back(Nanoseconds time, std::size_t first, double response, Present& present) const;

  const run::KernelSeries& trace_;
  std::vector<std::uint32_t> class_;
  std::vector<float> amount_;
  std::size_t count_;
};

}  // namespace joulediff::attribute
