// An energy with its standing: what no number in Joulediff goes without.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/units.h"

namespace joulediff {

// From the best to the weakest; a sum has the weakest standing of its terms.
enum class Standing { measured, replayed, estimated, modelled };

// What the meter sees.
enum class Boundary { rail, board, host, node, rack, facility };

std::string_view name(Standing standing);
std::string_view name(Boundary boundary);

// Joules with a 95 % interval of repeatability. The systematic error of the meter is stated once
// for the meter, never mixed in here: it cancels in ratios on one board.
struct Energy {
  Joules joules;
  Joules low;
  Joules high;
  Standing standing = Standing::measured;

  static Energy exact(Joules j, Standing s) { return {j, j, j, s}; }
  static Energy around(Joules j, Joules half_width, Standing s) {
    return {j, j - half_width, j + half_width, s};
  }
  Joules half_width() const { return (high - low) / 2; }
};

// Sum of independent energies: half widths add in quadrature, on each side.
inline Energy operator+(const Energy& a, const Energy& b) {
  const Joules j = a.joules + b.joules;
  const double down = std::hypot((a.joules - a.low).value, (b.joules - b.low).value);
  const double up = std::hypot((a.high - a.joules).value, (b.high - b.joules).value);
  return {j, j - Joules(down), j + Joules(up), std::max(a.standing, b.standing)};
}
inline Energy operator-(const Energy& a) {
  return {-a.joules, -a.high, -a.low, a.standing};
}
inline Energy operator-(const Energy& a, const Energy& b) {
  return a + -b;
}
// Scaling by a known, non-negative count.
inline Energy operator*(const Energy& a, double k) {
  return {a.joules * k, a.low * k, a.high * k, a.standing};
}
inline Energy operator/(const Energy& a, double k) {
  return a * (1 / k);
}

// For a report, of what cannot be negative: the interval ends at 0. A value that errors have pushed
// below 0 stays as it was made. Not for sums that follow: their errors add up uncut.
inline Energy non_negative(const Energy& a) {
  return {a.joules, std::min(a.joules, std::max(a.low, Joules(0))), a.high, a.standing};
}

}  // namespace joulediff
