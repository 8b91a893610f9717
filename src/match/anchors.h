// Equal values across two runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "match/classes.h"

namespace joulediff::match {

// How near two samples come under the permutation of axes that fits best.
struct Fit {
  double distance = 0;  // relative Frobenius
  std::vector<std::uint8_t> axes;
};

// The axis permutations that turn shape `a` into shape `b`: perm[i] is b's axis that holds a's axis
// i. At most kPermutations of them.
std::vector<std::vector<std::uint8_t>> permutations(const std::vector<std::int64_t>& a,
                                                    const std::vector<std::int64_t>& b);

// Nothing: further apart than `limit` under every permutation.
std::optional<Fit> fit(const Geometry& a, const Geometry& b, double limit);

// For each element of a's grid, row by row, the place in b's sample that holds it.
std::vector<std::uint32_t> permuted(const Geometry& a, const Geometry& b,
                                    const std::vector<std::uint8_t>& axes);

struct Pair {
  std::uint32_t a = kNone;  // class of A
  std::uint32_t b = kNone;  // class of B
  double distance = 0;
  std::uint32_t geometry_a = kNone;  // in EqualClass::geometries; kNone: no common one
  std::uint32_t geometry_b = kNone;
  std::vector<std::uint8_t> axes;
};

// One side, as all later stages see it.
struct SideView {
  const run::Run& run;
  const Graph& graph;
  const Classes& classes;
};

// Relative Frobenius distance of two classes, by their samples or else by their moments; none: they
// have other counts of elements or of what is not finite, or integers that differ.
std::optional<double> distance(const SideView& a, const SideView& b, std::uint32_t of_a,
                               std::uint32_t of_b);

// Mutual nearest neighbours within the tolerance, by ascending class of A.
std::vector<Pair> nearest_pairs(const SideView& a, const SideView& b, double tolerance);

}  // namespace joulediff::match
