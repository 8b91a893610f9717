#include "device/counter.h"

#include <utility>

namespace joulediff::device {

Counter::Reading Counter::next(Nanoseconds time, std::int64_t raw) {
  const auto before = std::exchange(last_, Last{time, raw});
  if (!before) return {raw, false};
  const double most = fastest_ * to_seconds(time - before->time + lumps_).value;
  const bool wraps = range_ > 0 && before->raw < range_ && raw < range_;
  const bool certain = !wraps || most < static_cast<double>(range_);
  if (raw < before->raw && wraps) {
    wrapped_ += range_;
    raw += range_;
  }
  const std::int64_t moved = raw - before->raw;
  const bool goes_on = certain && moved >= 0 && static_cast<double>(moved) <= most;
  if (!goes_on) wrapped_ = 0;
  return {last_->raw + wrapped_, !goes_on};
}

}  // namespace joulediff::device
