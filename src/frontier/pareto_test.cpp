#include "frontier/pareto.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace joulediff::frontier {
namespace {

using rules::Interval;

// A frontier to be drawn: small whole numbers, so that values tie and intervals touch.
struct Drawn {
  std::vector<Better> axes;
  std::vector<Candidate> candidates;
};

Drawn draw(int widest) {
  Drawn drawn;
  const std::size_t axes = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t i = 0; i < axes; ++i)
    drawn.axes.push_back(*rc::gen::element(Better::lower, Better::higher));
  const std::size_t count = *rc::gen::inRange<std::size_t>(0, 25);
  for (std::size_t i = 0; i < count; ++i) {
    Candidate one;
    for (std::size_t k = 0; k < axes; ++k) {
      const int value = *rc::gen::inRange(0, 12);
      one.push_back({double(value), double(value - *rc::gen::inRange(0, widest + 1)),
                     double(value + *rc::gen::inRange(0, widest + 1))});
    }
    drawn.candidates.push_back(std::move(one));
  }
  return drawn;
}

// Some truth inside the intervals.
std::vector<Candidate> truth(const std::vector<Candidate>& candidates) {
  std::vector<Candidate> exact;
  for (const Candidate& one : candidates) {
    exact.emplace_back();
    for (const Interval& i : one)
      exact.back().push_back(Interval::exact(
          *rc::gen::inRange(static_cast<int>(i.low), static_cast<int>(i.high) + 1)));
  }
  return exact;
}

std::vector<Standing> standings(const std::vector<Placement>& placed) {
  std::vector<Standing> list;
  for (const Placement& one : placed) list.push_back(one.standing);
  return list;
}

RC_GTEST_PROP(Pareto, NothingThatStaysIsDominatedAndAllElseIsByWhatStays, ()) {
  const Drawn d = draw(3);
  const auto placed = place(d.axes, d.candidates);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    bool dominated = false, by_what_stays = false;
    for (std::size_t j = 0; j < placed.size(); ++j) {
      if (!dominates(d.axes, d.candidates[j], d.candidates[i])) continue;
      dominated = true;
      by_what_stays = by_what_stays || placed[j].standing != Standing::dominated;
    }
    RC_ASSERT(dominated == (placed[i].standing == Standing::dominated));
    RC_ASSERT(dominated == by_what_stays);
    RC_ASSERT((placed[i].standing == Standing::best) == placed[i].by.empty());
    for (const std::size_t j : placed[i].by) {
      RC_ASSERT(placed[j].standing != Standing::dominated);
      RC_ASSERT((dominated ? dominates(d.axes, d.candidates[j], d.candidates[i])
                           : may_dominate(d.axes, d.candidates[j], d.candidates[i])));
    }
  }
}

RC_GTEST_PROP(Pareto, OrderDoesNotMatter, ()) {
  const Drawn d = draw(3);
  const std::size_t n = d.candidates.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = n; i > 1; --i)
    std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  std::vector<Candidate> shuffled;
  for (const std::size_t i : order) shuffled.push_back(d.candidates[i]);
  const auto plain = place(d.axes, d.candidates), mixed = place(d.axes, shuffled);
  for (std::size_t k = 0; k < n; ++k) {
    RC_ASSERT(mixed[k].standing == plain[order[k]].standing);
    std::vector<std::size_t> by;
    for (const std::size_t j : mixed[k].by) by.push_back(order[j]);
    std::ranges::sort(by);
    RC_ASSERT(by == plain[order[k]].by);
  }
}

RC_GTEST_PROP(Pareto, WhatIsDecidedHoldsForEveryTruthInsideTheIntervals, ()) {
  const Drawn d = draw(4);
  const auto wide = place(d.axes, d.candidates);
  const auto true_ones = place(d.axes, truth(d.candidates));
  for (std::size_t i = 0; i < wide.size(); ++i)
    if (wide[i].standing != Standing::undecided)
      RC_ASSERT(true_ones[i].standing == wide[i].standing);
}

RC_GTEST_PROP(Pareto, OfExactValuesNoneIsUndecidedAndSomethingIsBest, ()) {
  const Drawn d = draw(0);
  const auto list = standings(place(d.axes, d.candidates));
  RC_ASSERT(std::ranges::find(list, Standing::undecided) == list.end());
  RC_ASSERT(list.empty() || std::ranges::find(list, Standing::best) != list.end());
}

RC_GTEST_PROP(Pareto, WhatIsBestAndUniqueIsNotDominatedOnMoreAxes, ()) {
  Drawn d = draw(3);
  const auto before = place(d.axes, d.candidates);
  std::vector<bool> unique;
  for (const Candidate& one : d.candidates)
    unique.push_back(std::ranges::count(d.candidates, one) == 1);
  d.axes.push_back(*rc::gen::element(Better::lower, Better::higher));
  for (Candidate& one : d.candidates) one.push_back(Interval::exact(*rc::gen::inRange(0, 5)));
  const auto after = place(d.axes, d.candidates);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i].standing == Standing::best && unique[i])
      RC_ASSERT(after[i].standing != Standing::dominated);
}

TEST(Pareto, IsWhatItSays) {
  const std::vector<Better> axes{Better::lower, Better::higher};
  const auto of = [](double energy, double quality, double half) {
    return Candidate{Interval::around(energy, half), Interval::exact(quality)};
  };
  const std::vector<Candidate> candidates{
      of(10, 90, 0.1),    // the best quality
      of(7, 88, 0.1),     // 30 % less energy, worse: a trade, not a saving
      of(7.15, 88, 0.1),  // as good; which of the two needs less lies inside the intervals
      of(8, 88, 0.1),     // as good, and surely more
      of(12, 85, 0.1)};   // worse in both
  const auto placed = place(axes, candidates);
  EXPECT_EQ(standings(placed),
            (std::vector{Standing::best, Standing::undecided, Standing::undecided,
                         Standing::dominated, Standing::dominated}));
  EXPECT_EQ(placed[1].by, (std::vector<std::size_t>{2}));
  EXPECT_EQ(placed[2].by, (std::vector<std::size_t>{1}));
  EXPECT_EQ(placed[3].by, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(placed[4].by, (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Pareto, WhatIsNotKnownDecidesNothing) {
  const std::vector<Better> axes{Better::lower, Better::higher};
  const std::vector<Candidate> candidates{{Interval::unbounded(1), Interval::exact(90)},
                                          {Interval::exact(1000), Interval::exact(80)},
                                          {Interval::exact(1000), Interval::exact(95)}};
  const auto placed = place(axes, candidates);
  EXPECT_EQ(standings(placed),
            (std::vector{Standing::undecided, Standing::dominated, Standing::best}));
  EXPECT_EQ(placed[1].by, (std::vector<std::size_t>{2}));
}

TEST(Pareto, EqualsStandBesideOneAnother) {
  const std::vector<Better> axes{Better::lower};
  const std::vector<Candidate> candidates{{Interval::exact(1)}, {Interval::exact(1)}};
  for (const Placement& one : place(axes, candidates)) EXPECT_EQ(one.standing, Standing::best);
}

}  // namespace
}  // namespace joulediff::frontier
