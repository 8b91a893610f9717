#include "lab/tick_watch.h"

#include <algorithm>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

constexpr double kRest = 0.85;  // of the period: the ticks of an H200 come up to 5 ms early
constexpr Nanoseconds kLongestRest = 850 * kMillisecond;
constexpr Nanoseconds kReadPause = kMillisecond;       // between reads that wait for a tick
constexpr Nanoseconds kSlowPause = 20 * kMillisecond;  // for a counter that seems to stand still
constexpr Nanoseconds kPatience = 3 * kSecond;

}  // namespace

std::optional<Tick> TickWatch::observe(Nanoseconds begin, Nanoseconds end, std::int64_t value) {
  const Nanoseconds before = last_end_;
  const bool moved = before >= 0 && value != last_value_;
  if (first_end_ < 0) first_end_ = end;
  last_end_ = end;
  last_value_ = value;
  const bool was_frozen = frozen_;
  frozen_ = !moved && end - std::max(first_end_, last_tick_) > kPatience;
  froze_ = frozen_ && !was_frozen;
  if (!moved) {
    rested_ = false;
    next_read_ = end + (frozen_ ? kSlowPause : kReadPause);
    return std::nullopt;
  }
  const Tick tick{before + (end - before) / 2, (end - before) / 2, value};
  if (last_tick_ >= 0) {
    const Nanoseconds interval = tick.time - last_tick_;
    if (rested_)
      period_ = period_ * 9 / 10;  // the tick came while the watch rested
    else if (period_ == 0)
      period_ = interval;
    else
      period_ += (std::min(interval, 2 * period_) - period_) / 8;
  }
  last_tick_ = tick.time;
  rested_ = period_ > 0;
  // The next read should end before the tick, so it begins earlier by as long as this one took.
  const auto rest = static_cast<Nanoseconds>(kRest * static_cast<double>(period_));
  next_read_ = std::max(end + kReadPause, tick.time + std::min(rest, kLongestRest) - (end - begin));
  return tick;
}

}  // namespace joulediff::lab
