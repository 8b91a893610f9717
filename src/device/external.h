// Meters outside the machine, or that only another program can read: a program that prints a line
// for each reading. For a file that is there after the run: meter_file.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/units.h"

namespace joulediff::device {

struct MeterSample {
  Nanoseconds realtime = 0;  // as the meter's clock has it
  std::int64_t milliwatts = 0;
  std::string channel;  // empty: the meter has one
};

// "unix_seconds watts [channel]"; none where the line is no reading.
std::optional<MeterSample> meter_line(std::string_view line);

// A program that prints such lines, at any pace. It runs in a process group of its own, with our
// stderr, and is ended with its group and whoever has left that.
class MeterProgram {
 public:
  // `command` is the shell's.
  static Result<MeterProgram> start(const std::string& command);
  MeterProgram(MeterProgram&& other) noexcept;
  MeterProgram& operator=(MeterProgram&&) = delete;
  ~MeterProgram();

  // The readings that have come; waits up to `patience` for the first.
  std::vector<MeterSample> read(Nanoseconds patience);
  bool ended() const { return ended_; }

  // Ends the program, reads what is left, and says what was wrong with it.
  std::vector<MeterSample> stop();
  Diagnostics notes() const;

 private:
  MeterProgram(std::string command, std::string mark, pid_t pid, int output)
      : command_(std::move(command)), mark_(std::move(mark)), pid_(pid), output_(output) {}
  std::vector<MeterSample> lines();

  std::string command_;
  std::string mark_;  // in the environment of all its processes
  pid_t pid_ = -1;
  int output_ = -1;
  std::string rest_;  // of a line that has not come whole
  bool ended_ = false;
  bool died_ = false;  // before it was told to
  int status_ = 0;
  std::uint64_t readings_ = 0, garbage_ = 0;
  std::string first_garbage_;
};

}  // namespace joulediff::device
