// Lines, numbers and times of MLPerf logs, without copies: a results tree holds gigabytes of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/units.h"

namespace joulediff::mlperf {

// The lines of `text` without their ends (\n or \r\n), each with its number.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line);
  std::size_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

// The text up to the next comma, which is taken off.
std::string_view take_field(std::string_view& rest);

// All of the text is the number; "nan", "inf" and what is out of range are none.
std::optional<double> number(std::string_view text);

// "07-12-2025 23:43:15.822" as unix time. `day_first` swaps the first two. Days are counted once
// for each date, since a log stays on one for hours.
class Clock {
 public:
  explicit Clock(bool day_first = false) : day_first_(day_first) {}
  std::optional<Nanoseconds> read(std::string_view text);

 private:
  bool day_first_;
  std::string date_;
  Nanoseconds midnight_ = 0;
};

// The text of `"key": "text"` or the bare token of `"key": token` in one line of JSON, by search
// alone: for lines of which there are millions. None where the key is not there.
std::optional<std::string_view> json_field(std::string_view line, std::string_view key);

// What is beyond is no reading: SCPI meters say 9.9e37 for "over range", 9.91e37 for "none".
constexpr double kOverRange = 1e30;
constexpr std::string_view kNoReading =
    "the meter had no reading, or one over its range: no power is known then";

// Faults of one kind in one file: the first is named, the others are counted.
class Faults {
 public:
  Faults(Severity severity, std::string rule) : severity_(severity), rule_(std::move(rule)) {}
  void add(const std::string& file, std::size_t line, std::string_view what);
  void report(Diagnostics& diagnostics, std::string_view remedy) const;
  std::uint64_t count() const { return count_; }

 private:
  Severity severity_;
  std::string rule_;
  std::string first_;
  std::uint64_t count_ = 0;
};

}  // namespace joulediff::mlperf
