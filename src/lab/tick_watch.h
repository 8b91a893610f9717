// When to read an energy counter, and when it moved.
//
// A board's counter moves about every 100 ms, and a read costs milliseconds. Between two ticks
// nothing is to be learned, so after a tick the watch rests for most of the period that it has seen
// so far, and then reads until the value moves. The tick lies between the end of the last read that
// gave the old value and the end of the read that gave the new one: the middle is its time, half
// the distance its half width. A tick that fell into the rest is stated with that wide interval,
// and shortens the next rests.
#pragma once

#include <optional>

#include "base/units.h"

namespace joulediff::lab {

struct Tick {
  Nanoseconds time = 0;
  Nanoseconds half_width = 0;
  std::int64_t value = 0;
};

class TickWatch {
 public:
  // A read from `begin` to `end` gave `value`. A tick, where it has moved since the last read.
  std::optional<Tick> observe(Nanoseconds begin, Nanoseconds end, std::int64_t value);

  // No read before this instant is worth its cost.
  Nanoseconds next_read() const { return next_read_; }

  // With this read, the counter has stood still for seconds; once for each such time.
  bool froze() const { return froze_; }

 private:
  Nanoseconds first_end_ = -1;
  Nanoseconds last_end_ = -1;
  std::int64_t last_value_ = 0;
  Nanoseconds last_tick_ = -1;
  Nanoseconds period_ = 0;  // 0: not known yet
  Nanoseconds next_read_ = 0;
  bool rested_ = false;
  bool frozen_ = false;
  bool froze_ = false;
};

}  // namespace joulediff::lab
