// Pairs whose places in the two programs contradict one another are no pairs.
#pragma once

#include <vector>

#include "match/anchors.h"

namespace joulediff::match {

// Which pair each value belongs to; kNone: no pair.
using PairOfValue = std::vector<std::uint32_t>;

struct Ordered {
  std::vector<Pair> pairs;
  PairOfValue of_a;
  PairOfValue of_b;
};

Ordered drop_contradictions(const SideView& a, const SideView& b, std::vector<Pair> pairs);

}  // namespace joulediff::match
