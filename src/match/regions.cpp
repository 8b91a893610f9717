// The slice of an anchor is everything between it and the anchors above it, on one side. Slices
// overlap where an operator feeds several anchors; such anchors become one group if the group is
// closed (nothing outside lies on a path between them), so that the groups stay in an order.
// Otherwise the operator goes to the earliest group that needs it. Every operator's group is then
// the earliest of those whose slices hold it, and every edge between operators leads to the same or
// a later group: the regions partition the operators, count each once, and can be put in a line.
//
// Merging until both sides rest on the same anchors would swallow whole models; so a group is
// merged with the anchors only one side rests on just where that ends the difference at once, and
// is flagged otherwise.
#include "match/regions.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "match/groups.h"

namespace joulediff::match {
namespace {

struct Slices {
  const Graph& graph;
  const PairOfValue& of;
  std::vector<Ids> of_node;  // the pairs in whose slices a node is
  std::vector<Ids> above;    // by pair: the pairs its slice rests on
};

// Adds the pairs in whose slices whatever makes the value is.
void add_slices(const Slices& s, std::uint32_t v, Ids& pairs) {
  if (s.of[v] != kNone) {
    pairs.insert(s.of[v]);
    return;
  }
  for (const std::uint32_t n : s.graph.values[v].readers) unite(pairs, s.of_node[n]);
}

Slices slices(const Graph& graph, const PairOfValue& of, std::size_t pairs) {
  Slices s{graph, of, std::vector<Ids>(graph.nodes.size()), std::vector<Ids>(pairs)};
  for (auto it = graph.order.rbegin(); it != graph.order.rend(); ++it) {
    if (graph.nodes[*it].constant) continue;
    for (const std::uint32_t v : graph.nodes[*it].writes) {
      const auto& aliases = graph.values[v].aliases;
      if (std::ranges::find(aliases, *it) == aliases.end()) {
        add_slices(s, v, s.of_node[*it]);
      }
    }
  }
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    for (const std::uint32_t n : graph.values[v].aliases) {
      if (!graph.nodes[n].constant) add_slices(s, v, s.of_node[n]);
    }
  }
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::uint32_t v : graph.nodes[n].reads) {
      if (of[v] == kNone) continue;
      for (const std::uint32_t p : s.of_node[n]) {
        if (p != of[v]) s.above[p].insert(of[v]);
      }
    }
  }
  return s;
}

std::vector<double> places(const Slices& a, const Slices& b) {
  std::vector<double> place(a.above.size(), 0);
  for (const Slices* s : {&a, &b}) {
    std::vector<double> first(place.size(), 1);
    for (std::uint32_t n = 0; n < s->graph.nodes.size(); ++n) {
      const double at = static_cast<double>(s->graph.nodes[n].depth) / s->graph.depth;
      for (const std::uint32_t p : s->of_node[n]) first[p] = std::min(first[p], at);
    }
    for (std::size_t p = 0; p < place.size(); ++p) place[p] += first[p];
  }
  return place;
}

std::vector<std::uint32_t> groups_of(const Groups& groups, const Ids& pairs) {
  std::vector<std::uint32_t> found;
  for (const std::uint32_t p : pairs) found.push_back(groups.of(p));
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

void merge_shared(const Slices& a, const Slices& b, Groups& groups) {
  using Entry = std::tuple<std::uint32_t, std::size_t, Ids>;
  std::vector<Entry> shared;  // by the first group of each
  for (const Slices* s : {&a, &b}) {
    for (std::uint32_t n = 0; n < s->graph.nodes.size(); ++n) {
      const Ids& pairs = s->of_node[n];
      if (s->graph.nodes[n].free || pairs.size() < 2) continue;
      std::uint32_t first = kNone;
      for (const std::uint32_t p : pairs) first = std::min(first, groups.order(groups.of(p)));
      shared.emplace_back(first, pairs.size(), pairs);
    }
  }
  std::ranges::sort(shared);
  shared.erase(std::ranges::unique(shared).begin(), shared.end());
  for (const auto& [first, count, pairs] : shared) {
    std::vector<std::uint32_t> together = groups_of(groups, pairs);
    if (together.size() < 2) continue;
    if (groups.closed(together)) {
      groups.merge(together);
      continue;
    }
    std::ranges::sort(together, {}, [&](std::uint32_t g) { return groups.order(g); });
    groups.grow(together);
  }
}

// What each group is made of, over both sides.
struct Content {
  std::vector<bool> costly;  // by pair: its slices hold an operator that moves data
  std::vector<bool> any;     // by pair: its slices hold a node at all
};

Content content(const Slices& a, const Slices& b) {
  Content c{std::vector<bool>(a.above.size(), false), std::vector<bool>(a.above.size(), false)};
  for (const Slices* s : {&a, &b}) {
    for (std::uint32_t n = 0; n < s->graph.nodes.size(); ++n) {
      for (const std::uint32_t p : s->of_node[n]) {
        c.any[p] = true;
        if (!s->graph.nodes[n].free) c.costly[p] = true;
      }
    }
  }
  return c;
}

bool holds(const Groups& groups, std::uint32_t g, const std::vector<bool>& property) {
  return std::ranges::any_of(groups.members(g), [&](std::uint32_t p) { return property[p]; });
}

// Groups of views alone join the one group they are views of.
void merge_views(const Content& c, Groups& groups) {
  const std::vector<std::uint32_t> rank = groups.ranks();
  std::vector<std::uint32_t> order;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (!groups.members(g).empty()) order.push_back(g);
  }
  std::ranges::sort(order, {}, [&](std::uint32_t g) { return rank[g]; });
  for (const std::uint32_t g : order) {
    if (groups.members(g).empty() || groups.above(g).size() != 1) continue;
    if (!holds(groups, g, c.any) || holds(groups, g, c.costly)) continue;
    const std::uint32_t source = *groups.above(g).begin();
    if (holds(groups, source, c.any)) groups.merge({source, g});
  }
}

// The pairs that the groups rest on, on one side.
Ids inputs(const Slices& s, const Groups& groups, const std::vector<std::uint32_t>& merged) {
  Ids above;
  for (const std::uint32_t g : merged) {
    for (const std::uint32_t p : groups.members(g)) unite(above, s.above[p]);
  }
  for (auto it = above.begin(); it != above.end();) {
    const bool inside = std::ranges::find(merged, groups.of(*it)) != merged.end();
    it = inside ? above.erase(it) : it + 1;
  }
  return above;
}

void merge_inputs(const Slices& a, const Slices& b, const Content& c, Groups& groups) {
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (groups.members(g).empty() || !holds(groups, g, c.any)) continue;
    const Ids of_a = inputs(a, groups, {g}), of_b = inputs(b, groups, {g});
    if (of_a == of_b) continue;
    Ids differ;
    std::ranges::set_symmetric_difference(of_a, of_b, std::inserter(differ, differ.end()));
    std::vector<std::uint32_t> merged = groups_of(groups, differ);
    if (!std::ranges::all_of(merged, [&](std::uint32_t h) { return holds(groups, h, c.any); })) {
      continue;
    }
    merged.push_back(g);
    if (inputs(a, groups, merged) == inputs(b, groups, merged) && groups.closed(merged)) {
      groups.merge(merged);
    }
  }
}

// The rank of each node's group; kNone: no group.
std::vector<std::uint32_t> assign(const Slices& s, const Content& c, const Groups& groups,
                                  const std::vector<std::uint32_t>& rank) {
  const Graph& graph = s.graph;
  std::vector<std::uint32_t> of(graph.nodes.size(), kNone);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::uint32_t p : s.of_node[n]) of[n] = std::min(of[n], rank[groups.of(p)]);
  }
  std::vector<bool> costly(groups.size(), false);
  for (std::uint32_t p = 0; p < groups.size(); ++p) {
    if (c.costly[p]) costly[rank[groups.of(p)]] = true;
  }
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (!graph.nodes[n].free || of[n] == kNone) continue;
    if (!costly[of[n]] || groups_of(groups, s.of_node[n]).size() > 1) of[n] = kNone;
  }
  // A view that belongs to no one group stays with what it shows.
  for (const std::uint32_t n : graph.order) {
    if (of[n] != kNone || graph.nodes[n].constant || !graph.nodes[n].free) continue;
    std::uint32_t last = 0;
    bool made = false;
    for (const std::uint32_t v : graph.nodes[n].reads) {
      for (const std::uint32_t w : graph.values[v].writers) {
        if (graph.nodes[w].constant) continue;
        made = true;
        last = std::max(last, of[w]);
      }
    }
    if (made) of[n] = last;
  }
  // Constants, and views of the program's inputs, are charged to the first that uses them.
  for (const bool aliases : {false, true}) {
    for (auto it = graph.order.rbegin(); it != graph.order.rend(); ++it) {
      const Node& node = graph.nodes[*it];
      if (of[*it] != kNone || !(node.constant || node.free)) continue;
      const bool alias = std::ranges::find_first_of(node.reads, node.writes) != node.reads.end();
      if (alias != aliases) continue;
      for (const std::uint32_t v : node.writes) {
        for (const std::uint32_t r : graph.values[v].readers) of[*it] = std::min(of[*it], of[r]);
      }
    }
  }
  // What only made room goes with the first that wrote there.
  std::vector<std::uint32_t> first(graph.storages, kNone);
  const auto of_storage = [&](std::uint32_t n) -> std::uint32_t& {
    return first[graph.values[graph.nodes[n].writes.front()].storage];
  };
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (!graph.nodes[n].writes.empty()) of_storage(n) = std::min(of_storage(n), of[n]);
  }
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (of[n] != kNone || !(node.constant || node.free) || node.writes.empty()) continue;
    const bool first_made =
        std::ranges::all_of(node.reads, [&](std::uint32_t v) { return graph.values[v].constant; });
    if (first_made) of[n] = of_storage(n);
  }
  return of;
}

struct Reads {
  Ids pairs;             // anchors read from other parts
  Ids hidden;            // parts whose unmatched values are read
  bool foreign = false;  // an input of the program that has no partner is read
  bool any = false;      // there are nodes at all
};

std::vector<Reads> reads_of(const SideView& side, const Slices& s, const Groups& groups,
                            const std::vector<std::uint32_t>& rank,
                            const std::vector<std::uint32_t>& of, std::size_t parts) {
  std::vector<Reads> reads(parts);
  for (std::uint32_t n = 0; n < s.graph.nodes.size(); ++n) {
    if (of[n] == kNone || s.of_node[n].empty()) continue;  // nothing rests on dead ends
    Reads& r = reads[of[n]];
    r.any = true;
    for (const std::uint32_t v : s.graph.nodes[n].reads) {
      const Value& value = s.graph.values[v];
      if (s.of[v] != kNone) {
        if (rank[groups.of(s.of[v])] != of[n]) r.pairs.insert(s.of[v]);
      } else if (value.writers.empty()) {
        r.foreign = r.foreign || side.classes.of_value[v] != kNone;
      } else if (!value.constant) {
        for (const std::uint32_t w : value.writers) {
          if (of[w] != of[n]) r.hidden.insert(of[w]);
        }
      }
    }
  }
  return reads;
}

}  // namespace

Partition partition(const SideView& a, const SideView& b, const Ordered& ordered) {
  const std::size_t pairs = ordered.pairs.size();
  const Slices slices_a = slices(a.graph, ordered.of_a, pairs);
  const Slices slices_b = slices(b.graph, ordered.of_b, pairs);
  std::vector<Ids> above = slices_a.above;
  for (std::size_t p = 0; p < pairs; ++p) unite(above[p], slices_b.above[p]);
  Groups groups(above, places(slices_a, slices_b));
  const Content c = content(slices_a, slices_b);
  merge_shared(slices_a, slices_b, groups);
  merge_views(c, groups);
  merge_inputs(slices_a, slices_b, c, groups);

  const std::vector<std::uint32_t> rank = groups.ranks();
  std::vector<Part> parts(pairs);
  Partition result;
  const auto fill = [&](const SideView& side, const Slices& s,
                        std::vector<std::uint32_t> Part::* list, std::vector<std::uint32_t>& rest) {
    const std::vector<std::uint32_t> of = assign(s, c, groups, rank);
    for (std::uint32_t n = 0; n < s.graph.operators; ++n) {
      (of[n] == kNone ? rest : parts[of[n]].*list).push_back(n);
    }
    return reads_of(side, s, groups, rank, of, pairs);
  };
  const std::vector<Reads> reads_a = fill(a, slices_a, &Part::a, result.rest_a);
  const std::vector<Reads> reads_b = fill(b, slices_b, &Part::b, result.rest_b);
  for (std::uint32_t p = 0; p < pairs; ++p) {
    if (c.costly[p]) parts[rank[groups.of(p)]].outputs.push_back(p);
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    Part& part = parts[i];
    if (part.a.empty() && part.b.empty()) continue;
    const Reads& of_a = reads_a[i];
    const Reads& of_b = reads_b[i];
    std::ranges::set_union(of_a.pairs, of_b.pairs, std::back_inserter(part.inputs));
    part.inputs_differ =
        of_a.foreign || of_b.foreign ||
        (of_a.any && of_b.any && (of_a.pairs != of_b.pairs || of_a.hidden != of_b.hidden));
    result.parts.push_back(std::move(part));
  }
  return result;
}

}  // namespace joulediff::match
