#include "match/match.h"

#include <algorithm>
#include <functional>
#include <future>
#include <utility>

#include "match/agree.h"
#include "match/anchors.h"
#include "match/order.h"
#include "match/regions.h"
#include "match/tolerance.h"

namespace joulediff::match {
namespace {

std::vector<run::OperatorId> operators(const std::vector<std::uint32_t>& nodes) {
  std::vector<run::OperatorId> ids;
  ids.reserve(nodes.size());
  for (const std::uint32_t n : nodes) ids.emplace_back(n);
  return ids;
}

std::pair<Graph, Classes> make_side(const run::Run& run) {
  Graph graph = make_graph(run);
  Classes classes = equal_classes(run, graph);
  return {std::move(graph), std::move(classes)};
}

run::TensorId tensor_of(const EqualClass& equal, std::uint32_t geometry) {
  return geometry == kNone ? equal.tensor : equal.geometries[geometry].tensor;
}

}  // namespace

Match match(const run::Run& a, const run::Run& b, std::optional<double> tolerance) {
  // The sides know nothing of each other yet.
  auto side = std::async(std::launch::async, make_side, std::cref(b));
  const auto [graph_a, classes_a] = make_side(a);
  const auto [graph_b, classes_b] = side.get();
  const SideView side_a{a, graph_a, classes_a};
  const SideView side_b{b, graph_b, classes_b};

  Match result;
  result.tolerance = tolerance ? *tolerance : match::tolerance(a, b);
  const Ordered ordered =
      drop_contradictions(side_a, side_b, nearest_pairs(side_a, side_b, result.tolerance));
  const double limit = element_tolerance(a, b);
  Partition parts = partition(side_a, side_b, ordered);

  for (const Pair& pair : ordered.pairs) {
    result.anchors.push_back({tensor_of(classes_a.classes[pair.a], pair.geometry_a),
                              tensor_of(classes_b.classes[pair.b], pair.geometry_b), pair.distance,
                              pair.axes});
  }
  for (const Part& part : parts.parts) {
    Region region;
    region.a = operators(part.a);
    region.b = operators(part.b);
    region.inputs.assign(part.inputs.begin(), part.inputs.end());
    region.outputs.assign(part.outputs.begin(), part.outputs.end());
    region.inputs_differ = part.inputs_differ;
    region.outputs_agree = std::ranges::all_of(part.outputs, [&](std::uint32_t p) {
      return agree(side_a, side_b, ordered.pairs[p], limit);
    });
    result.regions.push_back(std::move(region));
  }
  result.unmatched_a = operators(parts.rest_a);
  result.unmatched_b = operators(parts.rest_b);
  return result;
}

}  // namespace joulediff::match
