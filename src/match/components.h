// Strong components of a directed graph.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace joulediff::match {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// The component of each vertex, numbered so that edges between components lead to lower numbers,
// and how many vertices each has.
struct Components {
  std::vector<std::uint32_t> of;
  std::vector<std::uint32_t> size;
};

Components strong_components(const Edges& edges, std::size_t vertices);

}  // namespace joulediff::match
