#include "lab/ring_watch.h"

#include <cstdlib>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

constexpr Nanoseconds kStep = 10 * kMillisecond;  // what is less is the clock being steered
constexpr Nanoseconds kRing = 3 * kSecond;        // it holds 2.4 s
constexpr std::uint64_t kLongestGap = 100'000;    // us; samples come every 20 ms

}  // namespace

RingWatch::Fetch RingWatch::observe(Nanoseconds monotonic, Nanoseconds realtime,
                                    const std::vector<device::RingSample>& ring) {
  Fetch fetch;
  const Nanoseconds offset = monotonic - realtime;
  if (offset_ && std::abs(offset - *offset_) > kStep) {
    fetch.clock_set = true;
    blind_until_ = monotonic + kRing;
  }
  offset_ = offset;
  if (monotonic < blind_until_) {
    forget_until(realtime);
    return fetch;
  }
  for (const device::RingSample& sample : ring) {
    if (sample.time_us <= seen_us_) continue;
    fetch.lost = fetch.lost || (connected_ && sample.time_us - seen_us_ > kLongestGap);
    fetch.samples.push_back(
        {static_cast<Nanoseconds>(sample.time_us) * 1000 + offset, sample.milliwatts});
    seen_us_ = sample.time_us;
    connected_ = true;
  }
  return fetch;
}

}  // namespace joulediff::lab
