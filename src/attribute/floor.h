// Static power at a temperature. Leakage grows as a board warms: it is measured once, on a board at
// rest, and charged in a trace and in replays that are 10 to 20 K hotter.
#pragma once

#include <cmath>
#include <optional>

#include "meter/meter.h"

namespace joulediff::attribute {

class Floor {
 public:
  // `celsius`: of the board while it was measured; unknown: it is taken as it is.
  Floor(const meter::StaticPower& measured, std::optional<double> celsius)
      : measured_(measured), celsius_(celsius) {}

  struct Watts {
    double value = 0;
    double half_width = 0;  // of what the temperature adds; the measured one's own is apart
  };
  Watts at(std::optional<double> celsius) const {
    const double watts = measured_.watts.value;
    if (!celsius || !celsius_) return {watts, 0};
    const double kelvin = *celsius - *celsius_;
    return {watts * (1 + kLeakage * kelvin), watts * kLeakage * std::abs(kelvin)};
  }
  // The same with all that is uncertain about it.
  meter::StaticPower power_at(std::optional<double> celsius) const {
    const Watts watts = at(celsius);
    return {joulediff::Watts(watts.value),
            joulediff::Watts(std::hypot(watts.half_width, measured_.half_width.value)),
            measured_.origin};
  }

 private:
  // Of static power, for each kelvin; between nothing and twice that (boards differ).
  static constexpr double kLeakage = 0.002;

  meter::StaticPower measured_;
  std::optional<double> celsius_;
};

}  // namespace joulediff::attribute
