// What a measurement's figure is worth: how far it may be off, and whether it was measured at all.
//
// Two kinds of error are kept apart. What is random (the edges of the window, one run against the
// next, an estimated part, of which nobody knows how it goes with the rest) stays in every
// comparison. What is systematic (the meter's own error, a factor) is the same in two measurements
// that were made alike, and cancels in their ratio.
// Where nobody says how large one of them is, it is unknown, and so is every interval that needs
// it.
#pragma once

#include <string>

#include "run/point.h"

namespace joulediff::rules {

// A value between its 95 % bounds; infinite bounds: how far it may be off is not known.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;

  static Interval exact(double value) { return {value, value, value}; }
  static Interval around(double value, double half) { return {value, value - half, value + half}; }
  static Interval unbounded(double value);
  bool bounded() const;
  bool operator==(const Interval&) const = default;
};

// The difference of two independent values, and their quotient (unbounded where y may be 0).
Interval operator-(const Interval& x, const Interval& y);
Interval operator/(const Interval& x, const Interval& y);

// Relative half widths at 95 %.
struct Margin {
  run::Fact systematic;  // the meter's; of what was scaled unknown
  run::Fact random;
  bool assumed = false;  // nothing was repeated: what two runs of one program differ by

  run::Fact with_systematic() const;
};

Margin margin_of(const run::Point& point);

// The same of what is known alone, for a rule that asks whether a difference is surely within the
// errors: what nobody states counts as nothing, and what was not repeated as no spread.
double known_error(const run::Point& point, bool with_systematic);

// Two runs of one program differ by as much: 1 %, of small or unknown machines 3 % (rule ST4).
double assumed_spread(const run::Point& point);

// One meter in one range, one factor: what is systematic cancels.
bool measured_alike(const run::Point& a, const run::Point& b);

// A figure of a site that is something smaller times a PUE.
bool scaled_by_pue(const run::Point& point);

// "measured"; "modelled: the energy of the rack times a PUE of 1.3"; "measured, but for 12 %
// (interconnect)"; "unknown".
std::string standing_of(const run::Point& point);

// Joules a unit of work; none where they are not known. `relative`: none for unbounded.
std::optional<Interval> per_unit(const run::Point& point, const run::Fact& relative);

}  // namespace joulediff::rules
