// Pairs grouped into regions: a directed graph that stays acyclic whatever is merged. Its groups
// are kept in a topological order, and a question is asked, or the order mended, only between the
// places of those that it is about: what is merged lies close together.
#pragma once

#include <cstdint>
#include <vector>

#include "match/ids.h"

namespace joulediff::match {

class Groups {
 public:
  // `above[p]`: the pairs that p's slice rests on. `place[p]` orders what the graph leaves open.
  // Groups at once what lies on cycles.
  Groups(const std::vector<Ids>& above, std::vector<double> place);

  std::uint32_t of(std::uint32_t pair) const { return group_[pair]; }
  const std::vector<std::uint32_t>& members(std::uint32_t group) const { return members_[group]; }
  const Ids& above(std::uint32_t group) const { return above_[group]; }
  std::size_t size() const { return group_.size(); }
  // Of two groups the one with the lower place is not below the other.
  std::uint32_t order(std::uint32_t group) const { return order_[group]; }

  // Whether nothing outside of `groups` lies between them, so that merging makes no cycle.
  bool closed(const std::vector<std::uint32_t>& groups) const;
  // The group that all of `groups`, which are closed, became.
  std::uint32_t merge(const std::vector<std::uint32_t>& groups);
  // Merges the first of `groups`, which ascend in order, with each later one that it is then closed
  // with.
  void grow(const std::vector<std::uint32_t>& groups);

  // A topological order that depends on the graph and the places alone: the rank of each group.
  std::vector<std::uint32_t> ranks() const;

 private:
  // Which groups a search has come by.
  class Marks {
   public:
    explicit Marks(std::size_t size) : of_(size, 0) {}
    void clear() { ++now_; }
    void set(std::uint32_t group) { of_[group] = now_; }
    bool test(std::uint32_t group) const { return of_[group] == now_; }

   private:
    std::vector<std::uint32_t> of_;
    std::uint32_t now_ = 1;
  };

  void merge_cycles();
  std::uint32_t contract(const std::vector<std::uint32_t>& groups);
  // Marks what is below `group` at places up to `last`; what is marked has been searched already.
  void mark_below(std::uint32_t group, std::uint32_t last, Marks& marks) const;

  std::vector<std::uint32_t> group_;                 // by pair
  std::vector<std::vector<std::uint32_t>> members_;  // by group; empty: merged into another
  std::vector<Ids> above_;                           // by group: groups directly above and below
  std::vector<Ids> below_;
  std::vector<double> place_;
  std::vector<std::uint32_t> order_;  // by group
  std::vector<std::uint32_t> at_;     // by place in that order: the group, or kNobody
  mutable Marks inside_, seen_;
  Marks below_grown_;
};

}  // namespace joulediff::match
