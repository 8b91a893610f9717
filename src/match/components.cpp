#include "match/components.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>

namespace joulediff::match {

Components strong_components(const Edges& edges, std::size_t vertices) {
  using Digraph =
      boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                         boost::no_property, std::uint32_t, std::uint32_t>;
  const Digraph graph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                      static_cast<std::uint32_t>(vertices));
  Components found;
  found.of.resize(vertices);
  const auto index = boost::get(boost::vertex_index, graph);
  const std::uint32_t count =
      boost::strong_components(graph, boost::make_iterator_property_map(found.of.begin(), index));
  found.size.resize(count);
  for (const std::uint32_t c : found.of) ++found.size[c];
  return found;
}

}  // namespace joulediff::match
