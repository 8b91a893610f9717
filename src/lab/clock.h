// The clock of everything that is recorded.
#pragma once

#include <time.h>

#include "base/units.h"

namespace joulediff::lab {

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kSecond = 1'000'000'000;

inline Nanoseconds read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}
inline Nanoseconds now() {
  return read_clock(CLOCK_MONOTONIC);
}
inline void pause_for(Nanoseconds time) {
  const timespec pause{time / kSecond, time % kSecond};
  nanosleep(&pause, nullptr);
}

// One instant on our clock and by the time of day, which outside meters and drivers' rings use.
struct Instant {
  Nanoseconds monotonic = 0, realtime = 0;
  Nanoseconds to_monotonic(Nanoseconds time) const { return time - realtime + monotonic; }
};
inline Instant read_both_clocks() {
  Instant closest;
  Nanoseconds apart = kSecond;
  for (int i = 0; i < 5; ++i) {
    const Nanoseconds before = now();
    const Nanoseconds real = read_clock(CLOCK_REALTIME);
    const Nanoseconds after = now();
    if (after - before < apart) {
      apart = after - before;
      closest = {before + (after - before) / 2, real};
    }
  }
  return closest;
}

}  // namespace joulediff::lab
