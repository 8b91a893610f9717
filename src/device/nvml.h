// A board's own sensors, as NVIDIA's management library gives them; the library is found by dlopen
// (JOULEDIFF_NVML overrides its path). A sensor that the board lacks reads as nothing, never as 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/units.h"

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

// A process that has a context on a board.
struct BoardProcess {
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> memory;  // bytes
};

// A handle: copies mean the same board. Every call goes into the driver and may take long, or not
// return at all.
class Board {
 public:
  const BoardInfo& info() const { return info_; }

  // Millijoules since the driver was loaded. A read takes milliseconds.
  std::optional<std::int64_t> energy() const;

  // Milliwatts. All but the average are newer fields, and not on every board; the module is what
  // carries a processor and its memory beside the GPU.
  struct Power {
    std::optional<std::int64_t> instant, average, memory, module;
  };
  Power power() const;
  std::optional<std::int64_t> power_limit() const;

  // What the ring holds after `since_us`, oldest first.
  std::vector<RingSample> ring(std::uint64_t since_us) const;

  std::optional<std::int64_t> sm_clock() const;      // MHz
  std::optional<std::int64_t> memory_clock() const;  // MHz
  std::optional<std::int64_t> temperature() const;   // degrees C
  std::optional<std::int64_t> throttle() const;      // bits of nvmlClocksEventReasons

  // Who uses the board; none where the driver does not tell.
  std::vector<BoardProcess> processes() const;
  // The board has fallen off the bus: none of its sensors will answer again.
  bool lost() const;

 private:
  friend struct Boards;
  Board(void* handle, BoardInfo info) : handle_(handle), info_(std::move(info)) {}

  void* handle_;
  BoardInfo info_;
};

// The boards that a CUDA program will see and whose meters see that program, and notes on what
// cannot be given. No trouble of a meter is an error: a program is recorded without it.
struct Boards {
  std::vector<Board> boards;
  Diagnostics notes;

  // As CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER have it; null: unset. A driver that does not
  // answer within `patience` is left alone.
  static Boards open(const char* visible_devices, const char* device_order = nullptr,
                     Nanoseconds patience = 20'000'000'000);
};

}  // namespace joulediff::device
