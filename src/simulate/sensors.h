// The sensors of a board, and what a sampler gets to read of them. Seconds, watts and joules
// throughout; zero means "has none" where nothing else is said.
#pragma once

#include <optional>
#include <vector>

#include "base/diagnostics.h"
#include "run/model.h"
#include "simulate/board.h"
#include "simulate/random.h"

namespace joulediff::simulate {

// A sensor that gives a new mean power every `period`.
struct PowerModel {
  run::Source source = run::Source::nvml_power_instant;
  double period = 0.1;
  double jitter = 0;      // of each update, to both sides
  double window = 0.025;  // what an update is a mean over; shorter than the period: part-time
  double delay = 0;       // the window ends so long before its update
  double lag = 0;         // time constant of an exponential filter before it
  double quantum = 1e-3;
  double gain = 1;
  double offset = 0;
  double noise = 0;  // deviation of an update
};

// The driver's ring of time-stamped samples: what is not fetched in time is overwritten.
struct RingModel {
  PowerModel power{run::Source::nvml_power_samples, 0.02, 1e-4, 0.02};
  int capacity = 119;
  double fetch_every = 1;
  double late = 0;          // how much later a fetch may come
  bool of_counter = false;  // its samples are those that the counter adds, instead of `power`'s
};

// A counter that stands still, and whether it forgets what was drawn meanwhile.
struct Freeze {
  double at = 0;  // seconds after the recording's begin
  double length = 0;
  bool forgets = false;
};

struct CounterModel {
  double period = 0.1;  // of its ticks
  double jitter = 0.001;
  // A perfect integrator has no step. Others add, every `step`, the mean power of the last
  // `window` seconds times the time since the step before; of every five the fourth is late by
  // `uneven`.
  double step = 0;
  double window = 0;
  double uneven = 0;
  double lag = 0;
  double quantum = 1e-3;
  double gain = 1;
  double offset = 0;
  double begin = 5000;  // joules on it
  double wraps_at = 0;  // joules; 0: never. The sampler knows where, and goes on
  std::vector<double> resets{};
  std::vector<Freeze> freezes{};
  double read_median = 0.003, read_longest = 0.016;  // seconds that a read takes
  double read_at = 1;  // when within a read its value is taken: 0 its begin, 1 its end
};

struct Sensors {
  std::optional<CounterModel> counter;
  std::vector<PowerModel> powers;
  std::optional<RingModel> ring;
  double poll_every = 0.05;  // of the powers, clocks, temperature and limits
};

// What the board really did.
struct History {
  Waveform waveform;
  std::vector<State> states;
  double ramp = 0;
  double cap_watts = 0;
};

// The series that a sampler would have written.
std::vector<run::Series> sense(const History& history, const Sensors& sensors, Random& random);

// The counter's ticks as they happen, before anybody reads them: when, and joules on it.
struct Ticks {
  std::vector<Nanoseconds> time;
  std::vector<double> joules;
};
Ticks ticks(const History& history, const CounterModel& counter, Random& random);

}  // namespace joulediff::simulate
