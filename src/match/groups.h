// Pairs grouped into regions: a directed graph that stays acyclic whatever is merged.
#pragma once

#include <cstdint>
#include <vector>

#include <boost/dynamic_bitset.hpp>

namespace joulediff::match {

using Bits = boost::dynamic_bitset<std::uint64_t>;

class Groups {
 public:
  // `above[p]`: the pairs that p's slice rests on. `place[p]` orders what the graph leaves open.
  // Groups at once what lies on cycles.
  Groups(const std::vector<Bits>& above, std::vector<double> place);

  std::uint32_t of(std::uint32_t pair) const { return group_[pair]; }
  const std::vector<std::uint32_t>& members(std::uint32_t group) const { return members_[group]; }
  const Bits& above(std::uint32_t group) const { return above_[group]; }
  std::size_t size() const { return group_.size(); }

  // Whether nothing outside of `groups` lies between them, so that merging makes no cycle.
  bool closed(const std::vector<std::uint32_t>& groups) const;
  // The group that all of `groups` became.
  std::uint32_t merge(const std::vector<std::uint32_t>& groups);

  // A topological order: the rank of each group.
  std::vector<std::uint32_t> ranks() const;

 private:
  void merge_cycles();

  std::vector<std::uint32_t> group_;                 // by pair
  std::vector<std::vector<std::uint32_t>> members_;  // by group; empty: merged into another
  std::vector<Bits> above_;                          // by group: groups directly above and below
  std::vector<Bits> below_;
  std::vector<double> place_;
};

}  // namespace joulediff::match
