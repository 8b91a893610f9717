// What a sensor is like, from what it said: how often it says something new, in which steps, over
// how long a window it means, how late it is, and how much of the time it looks at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meter/load.h"
#include "run/model.h"

namespace joulediff::meter {

// A property with its 95 % interval; or why the series does not tell it.
struct Property {
  double value = 0, low = 0, high = 0;
  std::string why;  // it is not identified; empty: it is
  bool identified() const { return why.empty(); }
  static Property unknown(std::string why) { return {0, 0, 0, std::move(why)}; }
};

// Readings at which a series said something new. Power in watts, counters in joules.
struct Updates {
  std::vector<Nanoseconds> time;        // middle of where it can have happened
  std::vector<Nanoseconds> half_width;  // of that
  std::vector<double> value;
  std::size_t size() const { return time.size(); }
};
Updates updates(const run::Series& series);
// A counter's mean power between its updates, each stamped with the end of that time.
Updates powers(const Updates& counter);

bool is_power(run::Source source);
// Joules or watts for one unit of the source's series; 0 for other quantities.
double unit(run::Source source);

// Seconds; the tick in watts or joules: the step of which all differences are multiples.
struct Rhythm {
  Property period, jitter, tick;
};
Rhythm rhythm(const run::Series& series);

// A reading is gain x (mean of the load over a window that ended `lag` before the update) +
// at_zero.
struct Response {
  Property window, lag;      // seconds
  Property gain;             // watts for one unit of the load
  Property at_zero, at_one;  // watts that it reads while the load is 0, and 1, for long
  double explained = 0;      // of the readings' variance
  double residual = 0;       // root mean square of what is left, watts
};
// `window`: known beforehand, seconds; none: found.
Response response(const Updates& readings, const Load& load, std::optional<double> window = {});

// The same for a load that is switched on and off faster than the sensor says anything new: at_zero
// and at_one are the powers of its two phases. Refused where the share of a window that was on
// hardly varies (a window as long as the load's period).
Response phase_powers(const Updates& readings, const Load& load, double window);

}  // namespace joulediff::meter
