// Static power at a temperature and a clock. Leakage grows as a board warms, and all of it goes
// with the voltage, which goes with the SM clock: it is measured once, on a board at rest at its
// boost clock, and charged in a trace and in replays that are 10 to 20 K hotter or held back by a
// limit.
#pragma once

#include <cmath>
#include <optional>

#include "meter/meter.h"

namespace joulediff::attribute {

class Floor {
 public:
  // Of the board while it was measured; unknown: it is taken as it is.
  Floor(const meter::StaticPower& measured, std::optional<double> celsius,
        std::optional<double> megahertz = {})
      : measured_(measured), celsius_(celsius), megahertz_(megahertz) {}

  struct Watts {
    double value = 0;
    double half_width = 0;  // of what state adds; the measured one's own is apart
  };
  Watts at(std::optional<double> celsius, std::optional<double> megahertz = {}) const {
    double watts = measured_.watts.value, half_width = 0;
    if (celsius && celsius_) {
      const double warmer = kLeakage * (*celsius - *celsius_);
      half_width = watts * std::abs(warmer);
      watts *= 1 + warmer;
    }
    if (megahertz && megahertz_ && *megahertz > 0 && *megahertz_ > 0) {
      const double faster = kClock * std::log(*megahertz / *megahertz_);
      half_width = std::hypot(half_width, watts * faster);
      watts *= std::exp(faster);
    }
    return {watts, half_width};
  }
  // The same with all that is uncertain about it.
  meter::StaticPower power_at(std::optional<double> celsius,
                              std::optional<double> megahertz = {}) const {
    const Watts watts = at(celsius, megahertz);
    return {joulediff::Watts(watts.value),
            joulediff::Watts(std::hypot(watts.half_width, measured_.half_width.value)),
            measured_.origin};
  }

 private:
  // Of static power, for each kelvin; between nothing and twice that (boards differ).
  static constexpr double kLeakage = 0.002;
  // Static power goes with the voltage at least, and dynamic energy, its square, with the clock to
  // the power of 0.75 (clock_scaling.cpp): half of that, between nothing and twice that.
  static constexpr double kClock = 0.375;

  meter::StaticPower measured_;
  std::optional<double> celsius_, megahertz_;
};

}  // namespace joulediff::attribute
