#include "attribute/presence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace joulediff::attribute {
namespace {

struct Running {
  Nanoseconds end = 0;
  std::size_t index = 0;
};

double seconds(Nanoseconds ns) {
  return to_seconds(ns).value;
}

}  // namespace

// Kernels that began before `first` are long over, at that response.
void Presence::hold_back(Nanoseconds time, std::size_t first, double response,
                         Present& present) const {
  for (std::size_t i = first; i < trace_.size() && trace_.start[i] < time; ++i) {
    const Nanoseconds start = trace_.start[i], end = std::min(time, start + trace_.duration[i]);
    if (trace_.duration[i] <= 0) continue;
    // The filtered rate at `time`.
    const double rate = amount_[i] / seconds(trace_.duration[i]);
    present.amounts[class_[i]] -=
        response * rate *
        (std::exp(-seconds(time - end) / response) - std::exp(-seconds(time - start) / response));
  }
}

std::vector<Present> Presence::up_to(std::span<const Nanoseconds> times, double response) const {
  constexpr double kForgotten = 8;  // time constants
  std::vector<Present> all;
  Present done{std::vector<double>(count_), 0, 0};
  std::vector<Running> running;
  Nanoseconds now = std::numeric_limits<Nanoseconds>::min();
  const auto pass = [&](Nanoseconds until) {
    while (!running.empty() && now < until) {
      const Nanoseconds next = std::min(until, std::ranges::min(running, {}, &Running::end).end);
      const double length = seconds(next - now);
      done.busy += length;
      if (running.size() > 1) done.overlapped += length;
      now = next;
      std::erase_if(running, [&](const Running& one) {
        if (one.end > now) return false;
        done.amounts[class_[one.index]] += amount_[one.index];
        return true;
      });
    }
    now = until;
  };
  std::size_t next = 0, recent = 0;
  Nanoseconds longest = 0;
  const auto reach = static_cast<Nanoseconds>(1e9 * kForgotten * response);
  for (const Nanoseconds time : times) {
    for (; next < trace_.size() && trace_.start[next] < time; ++next) {
      pass(trace_.start[next]);
      if (trace_.duration[next] <= 0)
        done.amounts[class_[next]] += amount_[next];
      else
        running.push_back({trace_.start[next] + trace_.duration[next], next});
      longest = std::max(longest, trace_.duration[next]);
    }
    pass(time);
    Present& present = all.emplace_back(done);
    for (const Running& one : running)
      present.amounts[class_[one.index]] += amount_[one.index] *
                                            seconds(time - trace_.start[one.index]) /
                                            seconds(trace_.duration[one.index]);
    if (response <= 0) continue;
    while (recent < next && trace_.start[recent] + longest + reach < time) ++recent;
    hold_back(time, recent, response, present);
  }
  return all;
}

}  // namespace joulediff::attribute
