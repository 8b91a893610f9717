// CLOCK_MONOTONIC is the clock of everything recorded.
#pragma once

#include <cstdint>
#include <ctime>

namespace joulediff::record {

inline std::uint64_t clock_ns(clockid_t id) noexcept {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

inline std::uint64_t now_ns() noexcept {
  return clock_ns(CLOCK_MONOTONIC);
}

// The two clocks at one moment.
struct ClockPair {
  std::uint64_t monotonic = 0, realtime = 0;
  std::int64_t ahead() const noexcept { return static_cast<std::int64_t>(realtime - monotonic); }
  static ClockPair now() noexcept {
    const std::uint64_t a = now_ns();
    const std::uint64_t realtime = clock_ns(CLOCK_REALTIME);
    const std::uint64_t b = now_ns();
    return {a + (b - a) / 2, realtime};
  }
};

// For a source that stamps with CLOCK_REALTIME and cannot be told otherwise: the distance between
// the two clocks is taken at both ends of what is converted, and is linear between them.
class RealtimeConverter {
 public:
  void mark() noexcept {
    before_ = after_;
    after_ = ClockPair::now();
    if (before_.monotonic == 0) before_ = after_;
  }
  std::uint64_t monotonic(std::uint64_t realtime) const noexcept {
    const double span = static_cast<double>(after_.realtime - before_.realtime);
    const auto drift = static_cast<double>(after_.ahead() - before_.ahead());
    const auto since = static_cast<double>(static_cast<std::int64_t>(realtime - before_.realtime));
    const double ahead = span > 0 ? drift * since / span : 0;
    return realtime -
           static_cast<std::uint64_t>(before_.ahead() + static_cast<std::int64_t>(ahead));
  }

 private:
  ClockPair before_, after_;
};

}  // namespace joulediff::record
