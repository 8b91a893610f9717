#include "lab/outside_readings.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::lab {
namespace {

constexpr Nanoseconds kEarliest = -kSecond / 2;
constexpr Nanoseconds kLatest = 2 * kSecond;
constexpr Nanoseconds kUnevenness =
    kMillisecond;  // of the clocks' offset from one call to the next

}  // namespace

void OutsideReadings::add(const std::vector<device::MeterSample>& samples, const Instant& at) {
  for (const device::MeterSample& sample : samples) {
    const Nanoseconds time = at.to_monotonic(sample.realtime);
    const Nanoseconds delay = at.monotonic - time;
    const auto [latest, fresh] = latest_.try_emplace(sample.channel, time);
    if (!fresh && time < latest->second - kUnevenness) ++backwards_;
    latest->second = std::max(latest->second, time);
    least_delay_ = std::min(least_delay_.value_or(delay), delay);
    readings_.push_back(
        {time, sample.milliwatts, sample.channel.empty() ? meter_ : sample.channel});
  }
}

void OutsideReadings::give_on_our_clock(Samples& samples) {
  if (readings_.empty()) return;
  if (!shift_) {
    const bool wrong = *least_delay_ < kEarliest || *least_delay_ > kLatest;
    shift_ = wrong ? *least_delay_ : 0;
    if (wrong)
      samples.diagnose(
          {Severity::warning, "record.meter_clock",
           fmt::format("the clock of the meter {} is {:.1f} s {} ours: its readings are moved by "
                       "that; set its clock, or let it print unix time",
                       meter_, std::abs(to_seconds(*shift_).value),
                       *shift_ > 0 ? "behind" : "ahead of")});
  }
  for (Reading& reading : readings_) reading.time += *shift_;
  give(samples);
}

void OutsideReadings::give_between(Nanoseconds begin, Nanoseconds end, Samples& samples) {
  std::erase_if(readings_, [&](const Reading& r) { return r.time < begin || r.time > end; });
  if (readings_.empty())
    samples.diagnose({Severity::warning, "record.meter_file",
                      fmt::format("{} has no readings of the time of this recording: its times "
                                  "should be unix time",
                                  meter_)});
  give(samples);
}

void OutsideReadings::tell_disorder(Samples& samples) {
  if (backwards_ == 0) return;
  samples.diagnose(
      {Severity::warning, "record.meter_clock",
       fmt::format("the time of the meter {} ran backwards: its readings are put in the "
                   "order of their times; let nothing set its clock meanwhile",
                   meter_),
       std::exchange(backwards_, 0)});
}

void OutsideReadings::give(Samples& samples) {
  tell_disorder(samples);
  std::ranges::stable_sort(readings_, {}, &Reading::time);
  for (const Reading& reading : readings_)
    samples.add(run::Source::external_power, reading.channel, reading.time, reading.milliwatts);
  readings_.clear();
}

}  // namespace joulediff::lab
