// Which samples of a driver's ring are new, and when they were taken on our clock.
//
// The driver stamps them with the time of day, which may be set while we record. A fetch that finds
// it set gives nothing, nor do those after it until the ring holds none of the old stamps: a gap,
// instead of samples at the wrong time. A ring that was not fetched in time has lost samples: a gap
// too, and said.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "device/nvml.h"

namespace joulediff::lab {

class RingWatch {
 public:
  explicit RingWatch(Nanoseconds realtime) { forget_until(realtime); }

  // The oldest stamp that is of interest is after this.
  std::uint64_t since_us() const { return seen_us_; }

  struct Sample {
    Nanoseconds time = 0;  // CLOCK_MONOTONIC
    std::int64_t milliwatts = 0;
  };
  struct Fetch {
    std::vector<Sample> samples;
    bool lost = false;       // samples between the last fetch and this one
    bool clock_set = false;  // the time of day, since the last fetch
  };
  // What a fetch at `monotonic`, which is `realtime` by day, gave.
  Fetch observe(Nanoseconds monotonic, Nanoseconds realtime,
                const std::vector<device::RingSample>& ring);

 private:
  void forget_until(Nanoseconds realtime) {
    seen_us_ = static_cast<std::uint64_t>(realtime / 1000);
    connected_ = false;
  }

  std::uint64_t seen_us_ = 0;
  bool connected_ = false;  // the last sample given is the one before the next
  std::optional<Nanoseconds> offset_;
  Nanoseconds blind_until_ = 0;
};

}  // namespace joulediff::lab
