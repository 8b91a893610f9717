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

// What to add to CLOCK_MONOTONIC to get CLOCK_REALTIME: the closest of a few snapshots.
inline Nanoseconds wall_minus_monotonic() {
  Nanoseconds offset = 0, closest = kSecond;
  for (int i = 0; i < 5; ++i) {
    const Nanoseconds before = now();
    const Nanoseconds wall = read_clock(CLOCK_REALTIME);
    const Nanoseconds after = now();
    if (after - before < closest) {
      closest = after - before;
      offset = wall - before - (after - before) / 2;
    }
  }
  return offset;
}

}  // namespace joulediff::lab
