// From the raw series of a block to energy over a window.
//
// The board's energy counter moves about every 100 ms, so energy is read between its ticks: a window
// is narrowed to the ticks inside it. The half width comes from the uncertainty of the tick times.
// The host's meter is a model: processor time times watts of a busy core, an interval of its own.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "run/model.h"

namespace joulediff::meter {

// What energy was read with, for every report: name, boundary and systematic error.
struct Meter {
  std::string name;          // "NVML energy counter", "host model"
  Boundary boundary = Boundary::board;
  double systematic = 0.05;  // relative, of the gain; cancels in ratios on one board
  Standing standing = Standing::measured;
};

// The best meter that the run's series allow; an error (environment) where there is none.
Result<Meter> choose_meter(const run::Run& run);

// Energy between two instants at which the meter is read: the ticks inside the asked window.
struct Reading {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  Energy energy;
  Seconds seconds() const { return to_seconds(end - begin); }
  Watts power() const { return energy.joules / seconds(); }
};

// None where the window is too short for the meter (fewer than `kMinimumTicks` ticks inside).
constexpr int kMinimumTicks = 3;
std::optional<Reading> read(const Meter& meter, const run::Block& block, Nanoseconds begin,
                            Nanoseconds end);

// Power of a device that is awake and does next to nothing, from the block's static window, else
// its idle window; with its interval. None where neither was recorded.
struct StaticPower {
  Watts watts;
  Watts half_width;
  std::string origin;  // "spinning kernel", "idle with context"
};
std::optional<StaticPower> static_power(const Meter& meter, const run::Block& block);

}  // namespace joulediff::meter
