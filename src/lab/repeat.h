// What is done again and again until a thread is to stop.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "base/units.h"

namespace joulediff::lab {

void sleep_until(Nanoseconds time, const std::stop_token& stop);

// Calls its tasks, each every period. A late one is skipped, not caught up: samples in a burst say
// nothing more. A task that returns false ends all.
struct Task {
  Nanoseconds period;
  std::function<bool()> act;
  Nanoseconds next = 0;
};
void repeat(std::vector<Task> tasks, const std::stop_token& stop);

}  // namespace joulediff::lab
