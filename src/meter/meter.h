// From the raw series of a block to energy over a window.
//
// The board's energy counter moves about every 100 ms, so energy is read between its ticks: a
// window is narrowed to the ticks inside it. The half width comes from the uncertainty of the tick
// times. The host's meter is a model: processor time times watts of a busy core, an interval of its
// own. A run on several boards, or a host with several packages, is metered by their sum. A meter
// of power is read as the counter that its readings add up to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meter/alignment.h"
#include "run/model.h"

namespace joulediff::meter {

// What energy was read with, for every report: name, boundary and systematic error.
struct Meter {
  std::string name;  // "NVML energy counter", "host model"
  Boundary boundary = Boundary::board;
  std::optional<double> systematic = 0.05;  // relative, of the gain; cancels in ratios on one
                                            // board; none: nobody said
  Standing standing = Standing::measured;
  run::Source source = run::Source::nvml_energy;  // the series that it reads
  std::vector<std::string> channels{};            // those added up; empty: all of the source
  std::optional<Alignment> alignment{};  // of an outside meter: by `delay` its readings are late
  double lag = 0;  // seconds: the time constant by which it follows the load (meter/lag.h)
};

// Watts of one busy core, of which the host model is made where nothing measures the host. Server
// parts draw 2 to 4 W a core at full load for the core alone and 6 to 10 W with their share of
// caches, fabric and memory; desktop parts up to 12 W. The middle is used, and the factor of two is
// systematic: it is the same for every program on one machine, so it cancels in comparisons there.
struct BusyCore {
  Watts low{3};
  Watts middle{6};
  Watts high{12};
};
constexpr BusyCore kBusyCore;

// After a change of load the board's power needs this long to settle.
constexpr Nanoseconds kSettle = 300'000'000;
Nanoseconds settle(const Meter& meter);  // kSettle, or 0 for the host's model

// The best meter of each boundary that the run's series allow; the first is the one that decides.
// Of the boards those are metered that the run says it used; where it does not say, the first.
std::vector<Meter> meters(const run::Run& run);

// Those that decide nothing: the platform's counter, the rails, the meters outside. Each channel is
// one of its own, since what it sees may hold what another one sees. An outside meter is there
// where the run says its boundary (the fact `meter_boundary`); it is not aligned yet.
std::vector<Meter> meters_beside(const run::Run& run);

// The first of meters(); an error (environment) where there is none.
Result<Meter> choose_meter(const run::Run& run);

// Energy between two instants at which the meter is read: the ticks inside the asked window.
struct Reading {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  Energy energy;
  bool broken =
      false;  // the meter failed within what was asked for: this is the longest whole part
  Seconds seconds() const { return to_seconds(end - begin); }
  Watts power() const { return energy.joules / seconds(); }
};

// None where the window is too short for the meter (fewer than `kMinimumTicks` ticks inside).
constexpr int kMinimumTicks = 3;
std::optional<Reading> read(const Meter& meter, const run::Block& block, Nanoseconds begin,
                            Nanoseconds end);

// The instants inside [begin, end] at which the meter was read: the longest stretch in which it
// neither broke off (another series of the same channel begins), nor went back (a reset), nor leapt
// beyond what hardware can draw. Failed reads (0) are no
// instants, nor are repeated values of a counter (a frozen counter has none).
std::vector<Nanoseconds> ticks(const Meter& meter, const run::Block& block, Nanoseconds begin,
                               Nanoseconds end);

// The reading cut at its ticks into at most `most` parts, each with at least kMinimumTicks of them;
// fewer than three parts come back as none.
std::vector<Reading> parts(const Meter& meter, const run::Block& block, const Reading& reading,
                           std::size_t most = 10);

// (integral of the driver's 20 ms power samples - reading) / reading: the two sources of one board
// may disagree. None where the samples do not cover the reading, or several boards are metered.
std::optional<double> ring_disagreement(const Meter& meter, const run::Block& block,
                                        const Reading& reading);

// Power of a device that is awake and does next to nothing, from the block's static window, else
// its idle window; with its interval. None where neither was recorded long enough. The host's model
// charges busy processor time alone: it has nothing to say of static power, and its answer is none.
struct StaticPower {
  Watts watts;
  Watts half_width;
  std::string origin;  // "spinning kernel", "idle with context"
};
std::optional<StaticPower> static_power(const Meter& meter, const run::Block& block);

// What a device draws while it waits for work: from the idle window alone.
std::optional<StaticPower> idle_power(const Meter& meter, const run::Block& block);

// The origins of static power.
constexpr const char* kSpinning = "spinning kernel";
constexpr const char* kIdle = "idle with context";

}  // namespace joulediff::meter
