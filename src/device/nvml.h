// A board's own sensors, as NVIDIA's management library gives them; the library is found by dlopen
// (JOULEDIFF_NVML overrides its path). A sensor that the board lacks reads as nothing, never as 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace joulediff::device {

struct BoardInfo {
  std::string name;
  std::string uuid;
  std::string driver;
};

// Power of one instant out of the driver's ring.
struct RingSample {
  std::uint64_t time_us = 0;  // CLOCK_REALTIME
  std::int64_t milliwatts = 0;
};

class Board {
 public:
  // The first board that a CUDA program with this CUDA_VISIBLE_DEVICES (null: unset) will see; none
  // where there is no driver, no board, or the variable hides them all. An error of the environment
  // where the board cannot be metered: the driver does not answer, or MIG cuts the board up.
  static Result<std::optional<Board>> open(const char* visible_devices);

  const BoardInfo& info() const { return info_; }

  // Millijoules since the driver was loaded. A read takes milliseconds.
  std::optional<std::int64_t> energy() const;

  // Milliwatts. Average and memory power are newer fields, and not on every board.
  struct Power {
    std::optional<std::int64_t> instant, average, memory;
  };
  Power power() const;
  std::optional<std::int64_t> power_limit() const;

  // What the ring holds after `since_us`, oldest first.
  std::vector<RingSample> ring(std::uint64_t since_us) const;

  std::optional<std::int64_t> sm_clock() const;      // MHz
  std::optional<std::int64_t> memory_clock() const;  // MHz
  std::optional<std::int64_t> temperature() const;   // degrees C
  std::optional<std::int64_t> throttle() const;      // bits of nvmlClocksEventReasons

 private:
  Board(void* handle, BoardInfo info) : handle_(handle), info_(std::move(info)) {}

  void* handle_;
  BoardInfo info_;
};

}  // namespace joulediff::device
