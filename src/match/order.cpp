// Two steps. First, on each side, a class that feeds itself through something else (a value that is
// computed again from its own results) keeps its first member and plain copies of that: else its
// region would have to hold the whole cycle. Then, while some pair is above another in A and below
// it in B, the pair with most such conflicts goes: one false pair far from its place conflicts with
// everything between, each true pair only with the false ones.
#include "match/order.h"

#include <algorithm>
#include <tuple>

#include <boost/dynamic_bitset.hpp>

namespace joulediff::match {
namespace {

using Bits = boost::dynamic_bitset<std::uint64_t>;

// For each node the pairs of which some value lies upstream of it.
std::vector<Bits> upstream(const Graph& graph, const PairOfValue& of, std::size_t pairs) {
  std::vector<Bits> above(graph.nodes.size(), Bits(pairs));
  for (const std::uint32_t n : graph.order) {
    for (const std::uint32_t v : graph.nodes[n].reads) {
      if (of[v] != kNone) above[n].set(of[v]);
      for (const std::uint32_t w : graph.values[v].writers) above[n] |= above[w];
    }
  }
  return above;
}

// For each pair the pairs above it.
std::vector<Bits> pairs_above(const Graph& graph, const PairOfValue& of, std::size_t pairs,
                              const std::vector<Bits>& node_above) {
  std::vector<Bits> above(pairs, Bits(pairs));
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    if (of[v] == kNone) continue;
    for (const std::uint32_t n : graph.values[v].writers) above[of[v]] |= node_above[n];
  }
  return above;
}

// Whether the node only copies values of pair `p`.
bool copies(const Graph& graph, const PairOfValue& of, std::uint32_t n, std::uint32_t p) {
  return std::ranges::all_of(graph.nodes[n].reads, [&](std::uint32_t v) {
    return graph.values[v].constant || of[v] == p;
  });
}

std::vector<bool> cyclic_pairs(const Graph& graph, const PairOfValue& of, std::size_t pairs) {
  const std::vector<Bits> node_above = upstream(graph, of, pairs);
  std::vector<Bits> above = pairs_above(graph, of, pairs, node_above);
  std::vector<bool> cyclic(pairs, false);
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    const std::uint32_t p = of[v];
    if (p == kNone) continue;
    for (const std::uint32_t n : graph.values[v].writers) {
      if (node_above[n].test(p) && !copies(graph, of, n, p)) cyclic[p] = true;
    }
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    for (auto j = above[i].find_first(); j != Bits::npos; j = above[i].find_next(j)) {
      if (j != i && above[j].test(i)) cyclic[i] = cyclic[j] = true;
    }
  }
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

std::vector<Bits> conflicts(const Graph& a, const Graph& b, const Ordered& ordered) {
  const std::size_t size = ordered.pairs.size();
  const auto above = [&](const Graph& graph, const PairOfValue& of) {
    return pairs_above(graph, of, size, upstream(graph, of, size));
  };
  const std::vector<Bits> above_a = above(a, ordered.of_a);
  const std::vector<Bits> above_b = above(b, ordered.of_b);
  const std::vector<Bits> below_a = transposed(above_a);
  const std::vector<Bits> below_b = transposed(above_b);
  std::vector<Bits> result(size);
  for (std::size_t i = 0; i < size; ++i) {
    result[i] = (above_a[i] & below_b[i]) | (below_a[i] & above_b[i]);
    result[i].reset(i);
  }
  return result;
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

  std::vector<Bits> conflict = conflicts(a.graph, b.graph, ordered);
  const auto depth = [&](std::size_t i) {
    return a.classes.classes[ordered.pairs[i].a].depth +
           b.classes.classes[ordered.pairs[i].b].depth;
  };
  const auto badness = [&](std::size_t i) {
    return std::tuple(conflict[i].count(), ordered.pairs[i].distance, depth(i));
  };
  std::vector<bool> dropped(size, false);
  while (true) {
    std::size_t worst = size;
    for (std::size_t i = 0; i < size; ++i) {
      if (conflict[i].none()) continue;
      if (worst == size || badness(i) > badness(worst)) worst = i;
    }
    if (worst == size) break;
    dropped[worst] = true;
    for (auto j = conflict[worst].find_first(); j != Bits::npos; j = conflict[worst].find_next(j)) {
      conflict[j].reset(worst);
    }
    conflict[worst].reset();
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
