// Readings of an outside meter, in whatever order and by whatever clock they come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/external.h"
#include "lab/clock.h"
#include "lab/samples.h"

namespace joulediff::lab {

class OutsideReadings {
 public:
  // `meter`: what to call it, and its channel where it names none.
  explicit OutsideReadings(std::string meter) : meter_(std::move(meter)) {}

  // What has come at an instant, or what a file was found to hold then.
  void add(const std::vector<device::MeterSample>& samples, const Instant& at);

  // No reading comes before its time, nor do all come seconds after it: if they seem to, the
  // meter's clock is wrong (by an hour, where it has local time), and they are moved onto ours. By
  // how much, the first call decides for all.
  void give_on_our_clock(Samples& samples);
  // Those of a time; that there are none is diagnosed.
  void give_between(Nanoseconds begin, Nanoseconds end, Samples& samples);

 private:
  struct Reading {
    Nanoseconds time = 0;
    std::int64_t milliwatts = 0;
    std::string channel;
  };
  void give(Samples& samples);
  void tell_disorder(Samples& samples);

  std::string meter_;
  std::vector<Reading> readings_;
  std::map<std::string, Nanoseconds> latest_;  // of each channel
  std::uint64_t backwards_ = 0;  // readings that came with an earlier time than one before
  std::optional<Nanoseconds> least_delay_;
  std::optional<Nanoseconds> shift_;
};

}  // namespace joulediff::lab
