// Which elements of its storage a tensor covers, whatever the order of its axes.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "run/model.h"

namespace joulediff::match {

struct Stretch {
  std::int64_t stride = 0;
  std::int64_t length = 1;
  auto operator<=>(const Stretch&) const = default;
};

// In bytes, stretches by falling stride, neighbours joined where they touch: a transposed or
// reshaped view of the same elements has the same set, a view in another format too.
struct ElementSet {
  std::int64_t offset = 0;
  std::vector<Stretch> stretches;
  auto operator<=>(const ElementSet&) const = default;
};

enum class Relation { disjoint, overlaps, covers };

ElementSet element_set(const run::Tensor& tensor);

// Whether `a` covers all of `b`, some of it or nothing. Exact where both are boxes of one grid
// (every slice of a dense tensor is); elsewhere `overlaps` where their extents meet.
Relation relation(const ElementSet& a, const ElementSet& b);

// `a` without the elements of `b`, where that is a box.
std::optional<ElementSet> without(const ElementSet& a, const ElementSet& b);

// The shape a sample is taken over: without axes of length 1 or stride 0; complex numbers have a
// trailing axis of 2.
std::vector<std::int64_t> squeezed_shape(const run::Tensor& tensor);

}  // namespace joulediff::match
