#include "lab/pacing.h"

#include <algorithm>
#include <cmath>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

constexpr double kLeastDuty = 0.1, kLessEachTime = 0.9;
constexpr double kHeldMore = 0.5;  // share of the time under a limit, beyond the program's
// A limit is enforced over some 10 ms: the load must repeat about as fast as the program's. Pauses
// stay short enough for bursts to be one window (meter/window.cpp joins what is 50 ms apart).
constexpr Nanoseconds kShortest = 20 * kMillisecond, kLongest = 100 * kMillisecond;
constexpr Nanoseconds kLongestIdle = 25 * kMillisecond;

Pace pace_of(double duty, Nanoseconds period) {
  const auto whole = static_cast<double>(std::clamp(period, kShortest, kLongest));
  const double idle = std::min((1 - duty) * whole, static_cast<double>(kLongestIdle));
  return {static_cast<Nanoseconds>(idle * duty / (1 - duty)), static_cast<Nanoseconds>(idle)};
}

}  // namespace

std::optional<Pace> Pacing::next(const Conditions& replay) {
  if (!program_.megahertz || !replay.megahertz || *program_.megahertz <= 0) return std::nullopt;
  const double off = *replay.megahertz / *program_.megahertz - 1;
  const bool held = replay.held_back && program_.held_back && off < 0 &&
                    *replay.held_back - *program_.held_back > kHeldMore;
  const bool too_busy = off < -kSame || held;
  const bool too_idle = off > kSame && duty_ < 1;
  if ((!too_busy && !too_idle) || tries_ == kMost) return std::nullopt;
  if (too_busy) too_busy_ = duty_;
  if (too_idle) too_idle_ = duty_;
  if (too_idle_ > 0) {
    duty_ = std::sqrt(too_busy_ * too_idle_);
  } else {
    const double less =
        program_.power && replay.power && *replay.power > 0 ? *program_.power / *replay.power : 1;
    if (duty_ == kLeastDuty) return std::nullopt;
    duty_ = std::max(kLeastDuty, duty_ * std::min(less, kLessEachTime));
  }
  ++tries_;
  return pace_of(duty_, period_);
}

}  // namespace joulediff::lab
