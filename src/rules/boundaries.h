// One job at several boundaries: what its work costs at the board, at the node, at the rack; what a
// saving at the board is worth further out; and whether the measurements can be of one job at all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "rules/grammar.h"
#include "rules/worth.h"

namespace joulediff::rules {

// Everything that `inner` sees, `outer` sees too. Not all are ordered: neither of a host's
// processors and a board lies in the other, and whether a "node" is meant before or behind its
// power supply is not said.
bool lies_inside(std::string_view inner, std::string_view outer);

// One side at one boundary.
struct Seen {
  std::size_t point = 0;             // of its side, as given
  std::optional<Interval> per_unit;  // joules, the meter's error within; none: not known
  std::optional<Interval> added;     // beyond the next boundary inside, `over`, of the same side
  std::string over;
};

struct BoundaryRow {
  std::string boundary;
  std::optional<Seen> a, b;
  // Only where no rule refuses them.
  std::optional<Interval> saved;  // joules a unit that b needs less than a
  std::optional<Interval> share;  // saved/max(a,b)
  std::optional<Interval> kept;   // saved here/saved at the reference, which lies inside
};

// What a rule objects to, and at which boundaries.
struct BoundaryObjection {
  std::string at;  // "board", "board and rack"
  Objection what;
};

struct Boundaries {
  std::vector<BoundaryRow> rows;  // the innermost first
  std::string reference;          // the board, else the innermost with a saving; empty: none
  std::vector<BoundaryObjection> objections;
  bool refused = false;
};

// Of one job (b is empty) or two. Boundaries that are unknown, or given twice on one side, are bad
// input. `despite`: rules whose errors are taken as warnings; one that refuses nothing is a
// mistake.
Result<Boundaries> boundaries(std::span<const run::Point> a, std::span<const run::Point> b,
                              std::span<const std::string> despite = {});

}  // namespace joulediff::rules
