#include "match/explain.h"

#include <algorithm>
#include <limits>

#include "match/anchors.h"

namespace joulediff::match {
namespace {

struct Side {
  explicit Side(const run::Run& of)
      : run(of), graph(make_graph(of)), classes(equal_classes(of, graph)) {}
  SideView view() const { return {run, graph, classes}; }
  const run::Run& run;
  const Graph graph;
  const Classes classes;
};

struct Nearest {
  std::uint32_t of_class = kNone;
  double distance = std::numeric_limits<double>::infinity();
};

// `swapped`: `one` is B.
Nearest nearest(const Side& one, const Side& other, std::uint32_t of_class, bool swapped) {
  Nearest found;
  for (std::uint32_t c = 0; c < other.classes.classes.size(); ++c) {
    const auto distance = swapped ? match::distance(other.view(), one.view(), c, of_class)
                                  : match::distance(one.view(), other.view(), of_class, c);
    if (distance && *distance < found.distance) found = {c, *distance};
  }
  return found;
}

std::vector<Alone> alone(const Side& one, const Side& other, const Match& match,
                         run::TensorId Anchor::* here, run::TensorId Anchor::* there,
                         const std::vector<run::OperatorId>& operators, bool swapped) {
  std::vector<std::uint32_t> value_of(one.run.tensors.size(), kNone);
  for (std::uint32_t v = 0; v < one.graph.values.size(); ++v) {
    for (const run::TensorId t : one.graph.values[v].tensors) value_of[t.index()] = v;
  }
  std::vector<bool> anchored(one.classes.classes.size(), false);
  for (const Anchor& anchor : match.anchors) {
    const std::uint32_t c = one.classes.of_value[value_of[(anchor.*here).index()]];
    if (c != kNone) anchored[c] = true;
  }
  std::vector<bool> taken(other.run.tensors.size(), false);  // by an anchor
  for (const Anchor& anchor : match.anchors) taken[(anchor.*there).index()] = true;

  std::vector<Alone> found;
  for (const run::OperatorId id : operators) {
    const run::Operator& op = one.run.operators[id.index()];
    if (op.view) continue;
    for (const run::TensorId t : op.outputs) {
      const std::uint32_t v = value_of[t.index()];
      const std::uint32_t c = one.classes.of_value[v];
      if (c != kNone && anchored[c]) continue;
      Alone value{id, t, WhyAlone::indistinct, {}, 0};
      if (one.graph.values[v].constant) {
        value.why = WhyAlone::constant;
      } else if (c != kNone) {
        const Nearest near = nearest(one, other, c, swapped);
        if (near.of_class == kNone) {
          value.why = WhyAlone::unlike;
        } else {
          const EqualClass& equal = other.classes.classes[near.of_class];
          value.nearest = equal.tensor;
          value.distance = near.distance;
          const bool has_partner = std::ranges::any_of(equal.values, [&](std::uint32_t w) {
            return std::ranges::any_of(other.graph.values[w].tensors,
                                       [&](run::TensorId u) { return taken[u.index()]; });
          });
          value.why = near.distance > match.tolerance ? WhyAlone::far
                      : has_partner                   ? WhyAlone::nearer
                                                      : WhyAlone::out_of_order;
        }
      }
      found.push_back(value);
    }
  }
  return found;
}

}  // namespace

Explanation explain(const run::Run& a, const run::Run& b, const Match& match,
                    const Region& region) {
  const Side side_a(a), side_b(b);
  return {alone(side_a, side_b, match, &Anchor::a, &Anchor::b, region.a, false),
          alone(side_b, side_a, match, &Anchor::b, &Anchor::a, region.b, true)};
}

}  // namespace joulediff::match
