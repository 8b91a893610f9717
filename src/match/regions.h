// From anchors to regions: which operators turn which equal values into which.
#pragma once

#include <vector>

#include "match/order.h"

namespace joulediff::match {

struct Part {
  std::vector<std::uint32_t> a;  // operators, ascending
  std::vector<std::uint32_t> b;
  std::vector<std::uint32_t> inputs;   // pairs
  std::vector<std::uint32_t> outputs;  // pairs
  bool inputs_differ = false;
};

struct Partition {
  std::vector<Part> parts;  // in topological order
  std::vector<std::uint32_t> rest_a;
  std::vector<std::uint32_t> rest_b;
};

Partition partition(const SideView& a, const SideView& b, const Ordered& ordered);

}  // namespace joulediff::match
