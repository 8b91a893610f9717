#include "match/groups.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/check.h"
#include "match/components.h"

namespace joulediff::match {
namespace {

constexpr std::uint32_t kNobody = 0xFFFFFFFFu;

}  // namespace

Groups::Groups(const std::vector<Ids>& above, std::vector<double> place)
    : group_(above.size()),
      members_(above.size()),
      above_(above),
      below_(above.size()),
      place_(std::move(place)),
      at_(above.size(), kNobody),
      inside_(above.size()),
      seen_(above.size()),
      below_grown_(above.size()) {
  for (std::uint32_t p = 0; p < above.size(); ++p) {
    group_[p] = p;
    members_[p] = {p};
    above_[p].erase(p);
    for (const std::uint32_t q : above_[p]) below_[q].insert(below_[q].end(), p);
  }
  merge_cycles();
  order_ = ranks();
  for (std::uint32_t g = 0; g < size(); ++g) {
    if (!members_[g].empty()) at_[order_[g]] = g;
  }
}

void Groups::merge_cycles() {
  Edges edges;
  for (std::uint32_t p = 0; p < size(); ++p) {
    for (const std::uint32_t q : above_[p]) edges.emplace_back(q, p);
  }
  const Components found = strong_components(edges, size());
  std::vector<std::vector<std::uint32_t>> components(found.size.size());
  for (std::uint32_t p = 0; p < size(); ++p) components[found.of[p]].push_back(p);
  for (const auto& c : components) {
    if (c.size() > 1) contract(c);
  }
}

bool Groups::closed(const std::vector<std::uint32_t>& groups) const {
  std::uint32_t last = 0;
  inside_.clear();
  seen_.clear();
  for (const std::uint32_t g : groups) {
    inside_.set(g);
    last = std::max(last, order_[g]);
  }
  std::vector<std::uint32_t> open = groups;
  while (!open.empty()) {
    const std::uint32_t g = open.back();
    open.pop_back();
    for (const std::uint32_t n : below_[g]) {
      if (inside_.test(n)) {
        if (!inside_.test(g)) return false;
      } else if (order_[n] < last && !seen_.test(n)) {
        seen_.set(n);
        open.push_back(n);
      }
    }
  }
  return true;
}

void Groups::mark_below(std::uint32_t group, std::uint32_t last, Marks& marks) const {
  std::vector<std::uint32_t> open{group};
  while (!open.empty()) {
    const std::uint32_t g = open.back();
    open.pop_back();
    for (const std::uint32_t n : below_[g]) {
      if (order_[n] > last || marks.test(n)) continue;
      marks.set(n);
      open.push_back(n);
    }
  }
}

std::uint32_t Groups::contract(const std::vector<std::uint32_t>& groups) {
  const std::uint32_t to = *std::ranges::min_element(groups);
  for (const std::uint32_t from : groups) {
    if (from == to) continue;
    for (const std::uint32_t g : above_[from]) {
      below_[g].erase(from);
      below_[g].insert(to);
    }
    for (const std::uint32_t g : below_[from]) {
      above_[g].erase(from);
      above_[g].insert(to);
    }
    unite(above_[to], above_[from]);
    unite(below_[to], below_[from]);
    above_[from].clear();
    below_[from].clear();
    for (const std::uint32_t p : members_[from]) group_[p] = to;
    members_[to].insert(members_[to].end(), members_[from].begin(), members_[from].end());
    members_[from].clear();
    place_[to] = std::min(place_[to], place_[from]);
    for (const std::uint32_t g : {to, from}) {
      above_[to].erase(g);
      below_[to].erase(g);
    }
  }
  return to;
}

// Between the first and the last of them, what is below goes behind them and the rest before: what
// is above none of it can be below, since they are closed.
std::uint32_t Groups::merge(const std::vector<std::uint32_t>& groups) {
  std::uint32_t first = kNobody, last = 0;
  inside_.clear();
  for (const std::uint32_t g : groups) {
    inside_.set(g);
    first = std::min(first, order_[g]);
    last = std::max(last, order_[g]);
  }
  seen_.clear();
  for (const std::uint32_t g : groups) mark_below(g, last, seen_);
  std::vector<std::uint32_t> before, behind;
  for (std::uint32_t place = first; place <= last; ++place) {
    const std::uint32_t g = std::exchange(at_[place], kNobody);
    if (g == kNobody || inside_.test(g)) continue;
    (seen_.test(g) ? behind : before).push_back(g);
  }
  const std::uint32_t to = contract(groups);
  std::uint32_t place = first;
  const auto put = [&](std::uint32_t g) {
    order_[g] = place;
    at_[place++] = g;
  };
  for (const std::uint32_t g : before) put(g);
  put(to);
  for (const std::uint32_t g : behind) put(g);
  return to;
}

// Two groups are closed if nothing that is directly above the later is below the earlier.
void Groups::grow(const std::vector<std::uint32_t>& groups) {
  std::uint32_t grown = groups.front();
  const std::uint32_t last = order_[groups.back()];
  below_grown_.clear();
  mark_below(grown, last, below_grown_);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const bool apart = std::ranges::any_of(
        above_[groups[i]], [&](std::uint32_t g) { return g != grown && below_grown_.test(g); });
    if (apart) continue;
    grown = merge({grown, groups[i]});
    mark_below(grown, last, below_grown_);
  }
}

std::vector<std::uint32_t> Groups::ranks() const {
  using Entry = std::pair<double, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::size_t> waiting(size());
  for (std::uint32_t g = 0; g < size(); ++g) {
    waiting[g] = above_[g].size();
    if (!members_[g].empty() && waiting[g] == 0) ready.emplace(place_[g], g);
  }
  std::vector<std::uint32_t> rank(size(), 0);
  std::uint32_t next = 0;
  while (!ready.empty()) {
    const std::uint32_t g = ready.top().second;
    ready.pop();
    rank[g] = next++;
    for (const std::uint32_t h : below_[g]) {
      if (--waiting[h] == 0) ready.emplace(place_[h], h);
    }
  }
  JD_CHECK(next == static_cast<std::uint32_t>(
                       std::ranges::count_if(members_, [](const auto& m) { return !m.empty(); })));
  return rank;
}

}  // namespace joulediff::match
