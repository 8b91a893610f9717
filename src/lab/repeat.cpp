#include "lab/repeat.h"

#include <algorithm>
#include <ctime>

#include "lab/clock.h"

namespace joulediff::lab {

void sleep_until(Nanoseconds time, const std::stop_token& stop) {
  constexpr Nanoseconds kSlice = 20 * kMillisecond;  // how late a stop may be noticed
  for (Nanoseconds left = time - now(); left > 0 && !stop.stop_requested(); left = time - now()) {
    const Nanoseconds slice = std::min(left, kSlice);
    const timespec pause{slice / kSecond, slice % kSecond};
    nanosleep(&pause, nullptr);
  }
}

void repeat(std::vector<Task> tasks, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Nanoseconds next = now() + kSecond;
    for (Task& task : tasks) {
      if (now() >= task.next) {
        if (!task.act()) return;
        task.next = std::max(task.next + task.period, now());
      }
      next = std::min(next, task.next);
    }
    sleep_until(next, stop);
  }
}

}  // namespace joulediff::lab
