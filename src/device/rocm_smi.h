// The sensors of AMD's boards, as ROCm SMI gives them; the library is found by dlopen
// (JOULEDIFF_ROCM_SMI overrides its path). A sensor that the board lacks reads as nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/units.h"

namespace joulediff::device {

class AmdBoard {
 public:
  const std::string& name() const { return name_; }
  const std::string& id() const { return id_; }  // "GPU-5a0f...", as ROCR_VISIBLE_DEVICES has it

  std::optional<std::int64_t> energy() const;        // microjoules
  std::optional<std::int64_t> power() const;         // milliwatts; the average where no other is
  std::optional<std::int64_t> sm_clock() const;      // MHz
  std::optional<std::int64_t> memory_clock() const;  // MHz
  std::optional<std::int64_t> temperature() const;   // degrees C

 private:
  friend struct AmdBoards;
  AmdBoard(std::uint32_t index, std::string name, std::string id)
      : index_(index), name_(std::move(name)), id_(std::move(id)) {}

  std::uint32_t index_;
  std::string name_, id_;
};

struct AmdBoards {
  std::vector<AmdBoard> boards;
  Diagnostics notes;

  // As ROCR_VISIBLE_DEVICES has it, and among those HIP_VISIBLE_DEVICES; null: unset.
  static AmdBoards open(const char* rocr_visible_devices, const char* hip_visible_devices,
                        Nanoseconds patience = 20'000'000'000);
};

// Whether a counter of energy may be believed: it is held against power times time, since some
// stand still within a process and some count what no board can draw. Readings come out, a second
// later, once the stretch that they lie in has agreed within a factor of ten.
class CheckedCounter {
 public:
  struct Reading {
    Nanoseconds time = 0;
    std::int64_t microjoules = 0;
    bool breaks = false;  // what was between was not believed
  };
  // `milliwatts`: none where the board does not tell; then nothing is believed.
  std::vector<Reading> next(Nanoseconds time, std::int64_t microjoules,
                            std::optional<std::int64_t> milliwatts);

  // Stretches in which the counter stood still, or counted the impossible.
  std::uint64_t frozen() const { return frozen_; }
  std::uint64_t impossible() const { return impossible_; }
  std::uint64_t unchecked() const { return unchecked_; }

 private:
  std::vector<Reading> judge();

  std::vector<Reading> pending_;
  double expected_ = 0;      // microjoules over the pending stretch
  Nanoseconds powered_ = 0;  // how much of it had a power
  bool doubted_ = false;     // the stretch before this one was not believed
  bool given_ = false;       // readings have come out
  std::uint64_t frozen_ = 0, impossible_ = 0, unchecked_ = 0;
};

}  // namespace joulediff::device
