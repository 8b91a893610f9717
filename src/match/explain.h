// Why values have no partner: for a person who wonders at a region.
#pragma once

#include <vector>

#include "match/match.h"

namespace joulediff::match {

enum class WhyAlone {
  constant,      // made of parameters and numbers alone
  indistinct,    // one element, fewer than three distinct values, or numbers that rounding makes
                 // differ
  unlike,        // the other side has no value of as many elements, as many of them not finite
  far,           // the nearest is beyond the tolerance
  nearer,        // the nearest is nearer to another
  out_of_order,  // the nearest is as near, but stands elsewhere in the order of the programs
};

struct Alone {
  run::OperatorId op;  // that makes it
  run::TensorId value;
  WhyAlone why = WhyAlone::unlike;
  run::TensorId nearest;  // on the other side; none: nothing can be compared with it
  double distance = 0;    // to the nearest, relative Frobenius
};

struct Explanation {
  std::vector<Alone> a, b;
};

// The values that the region's operators make (views aside) and that anchor nothing.
Explanation explain(const run::Run& a, const run::Run& b, const Match& match, const Region& region);

}  // namespace joulediff::match
