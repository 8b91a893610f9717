// What holds of every match, and other forms of the same run.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "match/match.h"
#include "run/model.h"

namespace joulediff::match::testing {

using Operators = std::vector<run::OperatorId>;

// The region of each operator, by index; the number of regions where it has none.
inline std::vector<std::size_t> region_of(const Match& m, Operators Region::* side, std::size_t n) {
  std::vector<std::size_t> of(n, m.regions.size());
  for (std::size_t r = 0; r < m.regions.size(); ++r) {
    for (const run::OperatorId op : m.regions[r].*side) of[op.index()] = r;
  }
  return of;
}

inline void check_side(const run::Run& run, const Match& m, Operators Region::* side,
                       const Operators& rest) {
  std::vector<int> times(run.operators.size(), 0);
  for (const Region& region : m.regions) {
    EXPECT_TRUE(std::ranges::is_sorted(region.*side));
    for (const run::OperatorId op : region.*side) ++times[op.index()];
  }
  EXPECT_TRUE(std::ranges::is_sorted(rest));
  for (const run::OperatorId op : rest) ++times[op.index()];
  EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 1; })) << "not a partition";

  const std::vector<std::size_t> of = region_of(m, side, run.operators.size());
  std::map<run::TensorId, std::size_t> producer;
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    for (const run::TensorId t : run.operators[i].outputs) producer.try_emplace(t, i);
  }
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    for (const run::TensorId t : run.operators[i].inputs) {
      const auto it = producer.find(t);
      if (it == producer.end() || run.operators[i].view) continue;
      EXPECT_LE(of[it->second], of[i]) << "an edge leads to an earlier region";
    }
  }
}

// Partition, ascending, in topological order, and nothing empty on both sides.
inline void check_match(const run::Run& a, const run::Run& b, const Match& m) {
  check_side(a, m, &Region::a, m.unmatched_a);
  check_side(b, m, &Region::b, m.unmatched_b);
  for (const Region& region : m.regions) {
    EXPECT_FALSE(region.a.empty() && region.b.empty());
    for (const std::size_t i : region.inputs) EXPECT_LT(i, m.anchors.size());
    for (const std::size_t i : region.outputs) EXPECT_LT(i, m.anchors.size());
  }
}

inline Match checked(const run::Run& a, const run::Run& b) {
  Match m = match(a, b);
  check_match(a, b, m);
  return m;
}

using Split = std::set<std::pair<Operators, Operators>>;

// The regions as sets of operators, whatever their order.
inline Split split(const Match& m) {
  Split s;
  for (const Region& r : m.regions) s.emplace(r.a, r.b);
  return s;
}
inline Split swapped(const Match& m) {
  Split s;
  for (const Region& r : m.regions) s.emplace(r.b, r.a);
  return s;
}

inline std::set<std::string> modules(const run::Run& run, const Operators& operators) {
  std::set<std::string> names;
  for (const run::OperatorId op : operators) {
    const run::Operator& o = run.operators[op.index()];
    if (!o.view) names.insert(o.module);
  }
  return names;
}

// The share of operators that move data and are in a region.
inline double matched_share(const run::Run& run, const Operators& rest) {
  const auto costly = [&](run::OperatorId op) { return !run.operators[op.index()].view; };
  const auto all = std::ranges::count_if(run.operators, [](const auto& op) { return !op.view; });
  return 1 - static_cast<double>(std::ranges::count_if(rest, costly)) / static_cast<double>(all);
}

struct Shuffled {
  run::Run run;
  std::vector<std::uint32_t> old_operator;  // by new index
};

// Tensors and operators in random order, names and modules gone.
inline Shuffled shuffled(const run::Run& run, unsigned seed) {
  std::mt19937 random(seed);
  const auto order = [&](std::size_t n) {
    std::vector<std::uint32_t> of(n);
    std::iota(of.begin(), of.end(), 0u);
    std::ranges::shuffle(of, random);
    return of;
  };
  Shuffled s{run, order(run.operators.size())};
  const std::vector<std::uint32_t> old_tensor = order(run.tensors.size());
  std::vector<run::TensorId> fresh(run.tensors.size());
  for (std::size_t t = 0; t < old_tensor.size(); ++t) {
    s.run.tensors[t] = run.tensors[old_tensor[t]];
    fresh[old_tensor[t]] = run::TensorId(t);
  }
  for (std::size_t i = 0; i < s.old_operator.size(); ++i) {
    run::Operator op = run.operators[s.old_operator[i]];
    for (run::TensorId& t : op.inputs) t = fresh[t.index()];
    for (run::TensorId& t : op.outputs) t = fresh[t.index()];
    op.name.clear();
    op.module.clear();
    s.run.operators[i] = std::move(op);
  }
  return s;
}

// `operators` of a shuffled run under their old numbers.
inline Operators original(const Shuffled& s, const Operators& operators) {
  Operators old;
  for (const run::OperatorId op : operators) old.emplace_back(s.old_operator[op.index()]);
  std::ranges::sort(old);
  return old;
}

}  // namespace joulediff::match::testing
