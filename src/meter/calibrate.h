// What a board and its sensors are like, from one recording of it. Any recording tells something of
// the sensors; that of the calibration loads (python/joulediff/_calibrate.py) tells most, and the
// board's floors and what its arithmetic and its memory cost, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meter/alias.h"
#include "meter/meter.h"
#include "meter/sensor.h"

namespace joulediff::meter {

// One source of a board. Window and lag are of what a reading says of the board's power; those of a
// counter are of its differences.
struct SensorModel {
  run::Source source = run::Source::nvml_energy;
  std::size_t readings = 0;
  Property period, jitter, tick;
  Property window, lag;
  std::string against;   // what window and lag were found with: "the load", or another source
  double explained = 0;  // share of the variance of its readings
  double residual = 0;   // watts
  Property sampled;      // the share of the time that it looks at
  Property gain;         // against the board's energy counter, over the whole recording
  std::vector<Alias> aliases;
  std::string no_aliases;  // why there are none
};

// A board that does nothing, or next to nothing.
struct Floor {
  std::string state;  // "no context", "idle with context", "spinning kernel"
  Property watts;
  double megahertz = 0, celsius = 0;  // means of the window; 0: unknown
};

// What one unit of work costs above the static power.
struct Coefficient {
  std::string what;  // "matmul dtype=bf16 unit=matrix"
  std::string per;   // "FLOP", "byte"
  Property joules;   // the interval spans the operand values that were tried
  std::vector<std::pair<std::string, Property>> by_values;  // "zeros", "random", ...
};

struct Profile {
  std::string board, uuid, driver, date;  // empty: unknown
  std::vector<SensorModel> sensors;
  std::vector<Floor> floors;
  Property static_per_celsius;  // watts
  std::vector<Coefficient> coefficients;
};

// One for each board that has series.
std::vector<Profile> calibrate(const run::Run& run);

// joulediff.calibrate/1
std::string to_json(const std::vector<Profile>& profiles);
Result<std::vector<Profile>> profiles_from_json(std::string_view text);

// The profile that was kept of this board when the run was recorded: it is a fact of the run, so
// that the same file always gives the same joules.
std::string profile_fact(std::string_view uuid);
std::optional<Profile> profile_of(const run::Run& run, std::string_view uuid);

// Static power as the profile has it: the spinning kernel's, else idle with a context.
std::optional<StaticPower> static_power(const Profile& profile);

// "nvml_power_samples"
std::string_view name_of(run::Source source);

}  // namespace joulediff::meter
