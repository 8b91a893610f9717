#include "match/groups.h"

#include <algorithm>
#include <queue>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

#include "base/check.h"

namespace joulediff::match {
namespace {

template <class F>
void for_each(const Bits& bits, F f) {
  for (auto i = bits.find_first(); i != Bits::npos; i = bits.find_next(i)) {
    f(static_cast<std::uint32_t>(i));
  }
}

}  // namespace

Groups::Groups(const std::vector<Bits>& above, std::vector<double> place)
    : group_(above.size()),
      members_(above.size()),
      above_(above),
      below_(above.size(), Bits(above.size())),
      place_(std::move(place)) {
  for (std::uint32_t p = 0; p < above.size(); ++p) {
    group_[p] = p;
    members_[p] = {p};
    above_[p].reset(p);
    for_each(above_[p], [&](std::uint32_t q) { below_[q].set(p); });
  }
  merge_cycles();
}

void Groups::merge_cycles() {
  using Digraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
  Digraph graph(size());
  for (std::uint32_t p = 0; p < size(); ++p) {
    for_each(above_[p], [&](std::uint32_t q) { boost::add_edge(q, p, graph); });
  }
  std::vector<std::uint32_t> component(size());
  const auto index = boost::get(boost::vertex_index, graph);
  const std::size_t count = static_cast<std::size_t>(
      boost::strong_components(graph, boost::make_iterator_property_map(component.begin(), index)));
  std::vector<std::vector<std::uint32_t>> components(count);
  for (std::uint32_t p = 0; p < size(); ++p) components[component[p]].push_back(p);
  for (const auto& c : components) {
    if (c.size() > 1) merge(c);
  }
}

bool Groups::closed(const std::vector<std::uint32_t>& groups) const {
  Bits inside(size()), seen(size());
  for (const std::uint32_t g : groups) inside.set(g);
  std::vector<std::uint32_t> open;
  const auto visit = [&](std::uint32_t g) {
    Bits next = below_[g] - inside - seen;
    seen |= next;
    for_each(next, [&](std::uint32_t n) { open.push_back(n); });
  };
  for (const std::uint32_t g : groups) visit(g);
  while (!open.empty()) {
    const std::uint32_t g = open.back();
    open.pop_back();
    if (below_[g].intersects(inside)) return false;
    visit(g);
  }
  return true;
}

std::uint32_t Groups::merge(const std::vector<std::uint32_t>& groups) {
  const std::uint32_t to = *std::ranges::min_element(groups);
  for (const std::uint32_t from : groups) {
    if (from == to) continue;
    for_each(above_[from], [&](std::uint32_t g) {
      below_[g].reset(from);
      below_[g].set(to);
    });
    for_each(below_[from], [&](std::uint32_t g) {
      above_[g].reset(from);
      above_[g].set(to);
    });
    above_[to] |= above_[from];
    below_[to] |= below_[from];
    above_[from].reset();
    below_[from].reset();
    for (const std::uint32_t p : members_[from]) group_[p] = to;
    members_[to].insert(members_[to].end(), members_[from].begin(), members_[from].end());
    members_[from].clear();
    place_[to] = std::min(place_[to], place_[from]);
    for (const std::uint32_t g : {to, from}) {
      above_[to].reset(g);
      below_[to].reset(g);
    }
  }
  return to;
}

std::vector<std::uint32_t> Groups::ranks() const {
  using Entry = std::pair<double, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::size_t> waiting(size());
  for (std::uint32_t g = 0; g < size(); ++g) {
    waiting[g] = above_[g].count();
    if (!members_[g].empty() && waiting[g] == 0) ready.emplace(place_[g], g);
  }
  std::vector<std::uint32_t> rank(size(), 0);
  std::uint32_t next = 0;
  while (!ready.empty()) {
    const std::uint32_t g = ready.top().second;
    ready.pop();
    rank[g] = next++;
    for_each(below_[g], [&](std::uint32_t h) {
      if (--waiting[h] == 0) ready.emplace(place_[h], h);
    });
  }
  JD_CHECK(next == static_cast<std::uint32_t>(
                       std::ranges::count_if(members_, [](const auto& m) { return !m.empty(); })));
  return rank;
}

}  // namespace joulediff::match
