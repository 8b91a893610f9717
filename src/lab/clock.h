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

}  // namespace joulediff::lab
