// Two steps. First, on each side, a class that feeds itself through something else (a value that is
// computed again from its own results) keeps its first member and plain copies of that: else its
// region would have to hold the whole cycle. Then, while some pair is above another in A and below
// it in B, the pair with most such conflicts goes: one false pair far from its place conflicts with
// everything between, each true pair only with the false ones.
//
// Both are questions about cycles: of one side's graph in which each pair is a vertex, and of both
// sides' graphs laid over each other at the pairs. So only within strong components of these, which
// are few and small where the pairs are true, is anything compared with everything.
#include "match/order.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include <boost/dynamic_bitset.hpp>

#include "match/components.h"

namespace joulediff::match {
namespace {

using Bits = boost::dynamic_bitset<std::uint64_t>;

// Beyond so many pairs a component is thinned before all its pairs are compared.
constexpr std::size_t kMostCompared = 4096;

// Whether the node only copies values of pair `p`.
bool copies(const Graph& graph, const PairOfValue& of, std::uint32_t n, std::uint32_t p) {
  return std::ranges::all_of(graph.nodes[n].reads, [&](std::uint32_t v) {
    return graph.values[v].constant || of[v] == p;
  });
}

// Adds a side's edges to a graph whose vertices are the pairs and nodes: node n is vertex first +
// n. `copies_too`: also those from a node that only copies a pair to that pair.
void add_edges(const Graph& graph, const PairOfValue& of, std::uint32_t first, bool copies_too,
               Edges& edges) {
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::uint32_t v : graph.nodes[n].reads) {
      if (of[v] != kNone) edges.emplace_back(of[v], first + n);
      for (const std::uint32_t w : graph.values[v].writers) {
        if (graph.position[w] < graph.position[n]) edges.emplace_back(first + w, first + n);
      }
    }
  }
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    if (of[v] == kNone) continue;
    for (const std::uint32_t n : graph.values[v].writers) {
      if (copies_too || !copies(graph, of, n, of[v])) edges.emplace_back(first + n, of[v]);
    }
  }
}

std::vector<bool> cyclic_pairs(const Graph& graph, const PairOfValue& of, std::size_t pairs) {
  Edges edges;
  add_edges(graph, of, static_cast<std::uint32_t>(pairs), false, edges);
  const Components components = strong_components(edges, pairs + graph.nodes.size());
  std::vector<bool> cyclic(pairs);
  for (std::size_t p = 0; p < pairs; ++p) cyclic[p] = components.size[components.of[p]] > 1;
  return cyclic;
}

// Leaves in pair `p` its first value and the copies made of that alone.
void keep_first(const Graph& graph, PairOfValue& of, std::uint32_t p,
                const std::vector<std::uint32_t>& members) {
  const auto place = [&](std::uint32_t v) {
    std::uint32_t first = 0;
    for (const std::uint32_t n : graph.values[v].writers) {
      first = std::max(first, graph.position[n] + 1);
    }
    return first;
  };
  std::vector<std::uint32_t> sorted = members;
  std::ranges::sort(sorted, {}, place);
  for (const std::uint32_t v : sorted) of[v] = kNone;
  of[sorted.front()] = p;
  for (const std::uint32_t v : sorted) {
    const auto& writers = graph.values[v].writers;
    const bool copy = !writers.empty() && std::ranges::all_of(writers, [&](std::uint32_t n) {
      return !graph.nodes[n].constant && copies(graph, of, n, p);
    });
    if (copy) of[v] = p;
  }
}

void break_cycles(const Graph& graph, PairOfValue& of, std::size_t pairs) {
  const std::vector<bool> cyclic = cyclic_pairs(graph, of, pairs);
  std::vector<std::vector<std::uint32_t>> members(pairs);
  for (std::uint32_t v = 0; v < of.size(); ++v) {
    if (of[v] != kNone && cyclic[of[v]]) members[of[v]].push_back(v);
  }
  for (std::uint32_t p = 0; p < pairs; ++p) {
    if (members[p].size() > 1) keep_first(graph, of, p, members[p]);
  }
}

PairOfValue pair_of_value(const SideView& side, const std::vector<Pair>& pairs,
                          std::uint32_t Pair::* of_class) {
  PairOfValue of(side.graph.values.size(), kNone);
  for (std::uint32_t p = 0; p < pairs.size(); ++p) {
    for (const std::uint32_t v : side.classes.classes[pairs[p].*of_class].values) of[v] = p;
  }
  return of;
}

std::vector<Bits> transposed(const std::vector<Bits>& rows) {
  std::vector<Bits> columns(rows.size(), Bits(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (auto j = rows[i].find_first(); j != Bits::npos; j = rows[i].find_next(j)) {
      columns[j].set(i);
    }
  }
  return columns;
}

// What may contradict: pairs, and the nodes between them on each side.
struct Component {
  std::vector<std::uint32_t> pairs, a, b;  // ascending
};

// The components of both sides' graphs over each other that hold more than one pair.
std::vector<Component> contradictory(const Graph& a, const Graph& b, const Ordered& ordered) {
  const auto pairs = static_cast<std::uint32_t>(ordered.pairs.size());
  const auto of_a = static_cast<std::uint32_t>(a.nodes.size());
  Edges edges;
  add_edges(a, ordered.of_a, pairs, true, edges);
  add_edges(b, ordered.of_b, pairs + of_a, true, edges);
  const Components components = strong_components(edges, pairs + a.nodes.size() + b.nodes.size());
  std::vector<std::uint32_t> among(components.size.size(), 0);
  for (std::uint32_t p = 0; p < pairs; ++p) ++among[components.of[p]];
  std::vector<std::uint32_t> number(components.size.size(), kNone);
  std::vector<Component> found;
  for (std::uint32_t v = 0; v < components.of.size(); ++v) {
    const std::uint32_t c = components.of[v];
    if (among[c] < 2) continue;
    if (number[c] == kNone) {
      number[c] = static_cast<std::uint32_t>(found.size());
      found.emplace_back();
    }
    Component& component = found[number[c]];
    if (v < pairs)
      component.pairs.push_back(v);
    else if (v < pairs + of_a)
      component.a.push_back(v - pairs);
    else
      component.b.push_back(v - pairs - of_a);
  }
  return found;
}

// For each pair of the component the pairs above it on one side, both by their place in it.
std::vector<Bits> pairs_above(const Graph& graph, const PairOfValue& of,
                              const std::vector<std::uint32_t>& pairs,
                              std::vector<std::uint32_t> nodes) {
  const auto place = [](const std::vector<std::uint32_t>& list, std::uint32_t item) {
    const auto it = std::ranges::lower_bound(list, item);
    return it != list.end() && *it == item ? static_cast<std::size_t>(it - list.begin())
                                           : list.size();
  };
  const std::vector<std::uint32_t> ascending = nodes;
  std::ranges::sort(nodes, {}, [&](std::uint32_t n) { return graph.position[n]; });
  std::vector<Bits> of_node(nodes.size(), Bits(pairs.size())),
      above(pairs.size(), Bits(pairs.size()));
  for (const std::uint32_t n : nodes) {
    Bits& upstream = of_node[place(ascending, n)];
    for (const std::uint32_t v : graph.nodes[n].reads) {
      if (of[v] != kNone) {
        if (const std::size_t p = place(pairs, of[v]); p < pairs.size()) upstream.set(p);
      }
      for (const std::uint32_t w : graph.values[v].writers) {
        if (graph.position[w] >= graph.position[n]) continue;
        if (const std::size_t m = place(ascending, w); m < nodes.size()) upstream |= of_node[m];
      }
    }
    for (const std::uint32_t v : graph.nodes[n].writes) {
      if (of[v] == kNone) continue;
      const auto& writers = graph.values[v].writers;
      if (std::ranges::find(writers, n) == writers.end()) continue;
      if (const std::size_t p = place(pairs, of[v]); p < pairs.size()) above[p] |= upstream;
    }
  }
  return above;
}

std::vector<Bits> conflicts(const Graph& a, const Graph& b, const Ordered& ordered,
                            const Component& component) {
  const std::vector<Bits> above_a = pairs_above(a, ordered.of_a, component.pairs, component.a);
  const std::vector<Bits> above_b = pairs_above(b, ordered.of_b, component.pairs, component.b);
  const std::vector<Bits> below_a = transposed(above_a);
  const std::vector<Bits> below_b = transposed(above_b);
  std::vector<Bits> result(component.pairs.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = (above_a[i] & below_b[i]) | (below_a[i] & above_b[i]);
    result[i].reset(i);
  }
  return result;
}

double depth(const SideView& a, const SideView& b, const Pair& pair) {
  return a.classes.classes[pair.a].depth + b.classes.classes[pair.b].depth;
}

// The pairs of a component that contradict most of its others.
std::vector<std::uint32_t> worst_of(const SideView& a, const SideView& b, const Ordered& ordered,
                                    const Component& component) {
  std::vector<Bits> conflict = conflicts(a.graph, b.graph, ordered, component);
  const auto badness = [&](std::size_t i) {
    const Pair& pair = ordered.pairs[component.pairs[i]];
    return std::tuple(conflict[i].count(), pair.distance, depth(a, b, pair));
  };
  std::vector<std::uint32_t> dropped;
  while (true) {
    std::size_t worst = conflict.size();
    for (std::size_t i = 0; i < conflict.size(); ++i) {
      if (conflict[i].none()) continue;
      if (worst == conflict.size() || badness(i) > badness(worst)) worst = i;
    }
    if (worst == conflict.size()) return dropped;
    dropped.push_back(component.pairs[worst]);
    for (auto j = conflict[worst].find_first(); j != Bits::npos; j = conflict[worst].find_next(j)) {
      conflict[j].reset(worst);
    }
    conflict[worst].reset();
  }
}

// The pairs of a large component whose places among the others, by depth, differ most between the
// sides: `count` of them.
std::vector<std::uint32_t> most_displaced(const SideView& a, const SideView& b,
                                          const Ordered& ordered, const Component& component,
                                          std::size_t count) {
  const std::size_t size = component.pairs.size();
  std::vector<double> displaced(size, 0);
  std::vector<std::uint32_t> sorted(size);
  for (const bool in_a : {true, false}) {
    const auto at = [&](std::uint32_t i) {
      const Pair& pair = ordered.pairs[component.pairs[i]];
      return in_a ? a.classes.classes[pair.a].depth : b.classes.classes[pair.b].depth;
    };
    for (std::uint32_t i = 0; i < size; ++i) sorted[i] = i;
    std::ranges::stable_sort(sorted, {}, at);
    for (std::size_t place = 0; place < size; ++place)
      displaced[sorted[place]] += in_a ? static_cast<double>(place) : -static_cast<double>(place);
  }
  for (std::uint32_t i = 0; i < size; ++i) sorted[i] = i;
  std::ranges::stable_sort(sorted, std::greater<>(),
                           [&](std::uint32_t i) { return std::abs(displaced[i]); });
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < std::min(count, size); ++i)
    found.push_back(component.pairs[sorted[i]]);
  return found;
}

void forget(PairOfValue& of, const std::vector<std::uint32_t>& renumbered) {
  for (std::uint32_t& p : of) {
    if (p != kNone) p = renumbered[p];
  }
}

}  // namespace

Ordered drop_contradictions(const SideView& a, const SideView& b, std::vector<Pair> pairs) {
  Ordered ordered{std::move(pairs), {}, {}};
  const std::size_t size = ordered.pairs.size();
  ordered.of_a = pair_of_value(a, ordered.pairs, &Pair::a);
  ordered.of_b = pair_of_value(b, ordered.pairs, &Pair::b);
  break_cycles(a.graph, ordered.of_a, size);
  break_cycles(b.graph, ordered.of_b, size);

  std::vector<bool> dropped(size, false);
  const auto drop = [&](const std::vector<std::uint32_t>& worst) {
    for (const std::uint32_t p : worst) dropped[p] = true;
    for (PairOfValue* of : {&ordered.of_a, &ordered.of_b}) {
      for (std::uint32_t& p : *of) {
        if (p != kNone && dropped[p]) p = kNone;
      }
    }
  };
  // A false pair far from its place makes one component of all between: it goes first, and where
  // there are many, more at a time.
  for (std::size_t round = 0;; ++round) {
    std::vector<std::uint32_t> worst;
    bool thinned = false;
    for (const Component& component : contradictory(a.graph, b.graph, ordered)) {
      const bool large = component.pairs.size() > kMostCompared;
      thinned = thinned || large;
      const auto found = large
                             ? most_displaced(a, b, ordered, component, std::size_t{1} << round / 4)
                             : worst_of(a, b, ordered, component);
      worst.insert(worst.end(), found.begin(), found.end());
    }
    drop(worst);
    if (!thinned) break;
  }

  std::vector<std::uint32_t> renumbered(size, kNone);
  std::vector<Pair> kept;
  for (std::size_t i = 0; i < size; ++i) {
    if (dropped[i]) continue;
    renumbered[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(ordered.pairs[i]));
  }
  ordered.pairs = std::move(kept);
  forget(ordered.of_a, renumbered);
  forget(ordered.of_b, renumbered);
  return ordered;
}

}  // namespace joulediff::match
