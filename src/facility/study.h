// What a plan comes to: for each alternative the year with its range, and for the alternatives
// together what decides between them.
//
// A range is made of one change at a time: each input goes to its low and to its high while the
// others stay at their base, and what that moves the outcome by is added up as the root of the sum
// of squares, upwards and downwards apart; what no single change brings below 0 ends there. That
// holds for inputs that err independently, as the
// joules of base/energy.h do; replicas come in whole numbers, so an outcome may leap.
//
// The difference of two alternatives is taken with the same value of a shared input on both sides
// (the site's PUE is the same for both), so what they share mostly cancels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facility/model.h"
#include "facility/plan.h"

namespace joulediff::facility {

enum class Section { service, replicas, energy, per_unit, power, cost, carbon };
std::string_view title(Section section);

// One line of a report. All measures are those of a year.
struct Measure {
  Section section;
  std::string_view key;    // "site_energy"
  std::string_view label;  // "energy of the site"
  std::string_view unit;   // "J"; "currency" and "unit" stand for the plan's own
  std::optional<Boundary> boundary;
  double (*of)(const Year&);
};
const std::vector<Measure>& measures();

struct Subject {
  Range device;               // J per unit at load, no site in it
  Standing device_standing;   // the weakest of its inputs
  Year year;                  // at base values
  std::vector<Range> values;  // one for each measure; NaN where unknown
};

// One input's effect on what decides: the difference of the pair.
struct Swing {
  InputId input;
  double at_low = 0;  // difference with the input at its low
  double at_high = 0;
  double width() const { return at_high > at_low ? at_high - at_low : at_low - at_high; }
};

// Where the order of the pair turns over.
struct BreakEven {
  InputId input;
  double value = 0;
  bool within_range = false;  // of the input's low to high
};

// The best alternative against another. difference = (other - best) / max(best, other).
struct Pair {
  std::size_t best = 0;
  std::size_t other = 0;
  Range difference;
  std::vector<Swing> tornado;         // of inputs with a range, the widest first
  std::vector<BreakEven> break_even;  // nearest first
};

// The best against another after so much growth, and with use that grows as a unit gets cheaper.
struct Demand {
  Range factor;               // on the service after the plan's years; NaN if not said
  std::vector<Range> energy;  // J of the site, for each alternative, in the last year
  std::vector<Range> replicas;
  std::vector<Range> peak;  // W
};

struct Rebound {
  Range share;        // of the saving that is taken back; NaN if not said
  double saving = 0;  // other - best at equal demand, in the unit of the plan's aim
  Range taken_back;
  Range left;
};

struct Study {
  Plan plan;
  std::vector<Subject> subjects;     // as plan.alternatives
  std::vector<std::size_t> ranking;  // the best first; empty if they do not do equal work
  std::vector<Pair> pairs;           // the best against each other, in the order of the ranking
  Demand demand;
  std::vector<Rebound> rebound;  // one for each pair
  Diagnostics diagnostics;       // of the plan and of the study
  // All that arrives is served, as much of it in time by one alternative as by the others.
  bool same_work = false;
};

Study study(Plan plan);

// Rules F1 to F8: what a statement about a site needs. Part of study().
Diagnostics review(const Study& study);

double difference(double best, double other);

}  // namespace joulediff::facility
