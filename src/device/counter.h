// What the readings of an energy counter mean, one after the other. A counter goes on, or wraps at
// its range, or breaks: it fell back to a new beginning (a reset), leapt further than hardware can
// draw (permission that arrives gives a first sample of 53,131 W), or was not read for so long that
// it may have wrapped unseen. Over a break nothing is known.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace joulediff::device {

class Counter {
 public:
  // `range`: the counter begins again at 0 after this many units; 0: never. `fastest`: units that
  // it can count in a second. `lumps`: it moves in ticks that may hold this much time.
  Counter(std::int64_t range, double fastest, Nanoseconds lumps)
      : range_(range), fastest_(fastest), lumps_(lumps) {}

  struct Reading {
    std::int64_t value = 0;  // counts on over wraps; after a break, from the raw value again
    bool breaks = false;     // nothing connects it with the reading before
  };
  Reading next(Nanoseconds time, std::int64_t raw);

 private:
  std::int64_t range_;
  double fastest_;
  Nanoseconds lumps_;
  struct Last {
    Nanoseconds time;
    std::int64_t raw;
  };
  std::optional<Last> last_;
  std::int64_t wrapped_ = 0;
};

}  // namespace joulediff::device
