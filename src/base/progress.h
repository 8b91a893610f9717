// One line on stderr that says what goes on and how long it will still take; on a terminal only.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/units.h"

namespace joulediff {

// "recording a.jd  [████░░░░░░░░]  33 %  12 s left", cut to `width` columns. No time left is given
// before 2 % are done.
std::string progress_line(std::string_view label, double fraction, Seconds elapsed,
                          std::size_t width);

class Progress {
 public:
  // Silent where `quiet` is set or stderr is no terminal. NO_COLOR in the environment leaves out
  // colour, not the line.
  explicit Progress(bool quiet = false);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool shown() const { return shown_; }

  // Drawn at most ten times a second. The clock of the time left starts with the first call.
  void update(std::string_view label, double fraction);

  // Erases the line, so that what is printed next begins on an empty one.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_ = false;
  bool colour_ = false;
  bool started_ = false;
  bool drawn_ = false;
  Clock::time_point begin_;
  Clock::time_point last_;
  std::string last_label_;
};

}  // namespace joulediff
