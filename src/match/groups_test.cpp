// Groups against what follows from their definition alone, on random graphs.

#include "match/groups.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulediff::match {
namespace {

using Members = std::vector<std::uint32_t>;

// At least 0, less than `end`.
std::uint32_t draw(std::mt19937& random, std::size_t end) {
  return static_cast<std::uint32_t>(random() % end);
}

// A graph in which pair p rests on some of those shortly before it, so that it has no cycle.
std::vector<Ids> random_graph(std::mt19937& random, std::uint32_t size) {
  std::vector<Ids> above(size);
  for (std::uint32_t p = 1; p < size; ++p) {
    const std::uint32_t reach = std::min<std::uint32_t>(p, 6);
    for (std::uint32_t k = draw(random, 3); k > 0; --k)
      above[p].insert(p - 1 - draw(random, reach));
  }
  return above;
}

bool leads(const Groups& groups, std::uint32_t from, std::uint32_t to) {
  const Ids& above = groups.above(to);
  return std::ranges::any_of(above,
                             [&](std::uint32_t g) { return g == from || leads(groups, from, g); });
}

Members alive(const Groups& groups) {
  Members found;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (!groups.members(g).empty()) found.push_back(g);
  }
  return found;
}

// Some group outside lies on a way from one of them to another.
bool something_between(const Groups& groups, const Members& of) {
  for (const std::uint32_t x : alive(groups)) {
    if (std::ranges::find(of, x) != of.end()) continue;
    const bool below =
        std::ranges::any_of(of, [&](std::uint32_t g) { return leads(groups, g, x); });
    const bool above =
        std::ranges::any_of(of, [&](std::uint32_t g) { return leads(groups, x, g); });
    if (below && above) return true;
  }
  return false;
}

void check_order(const Groups& groups) {
  std::set<std::uint32_t> places;
  const std::vector<std::uint32_t> ranks = groups.ranks();
  for (const std::uint32_t g : alive(groups)) {
    EXPECT_TRUE(places.insert(groups.order(g)).second);
    for (const std::uint32_t h : groups.above(g)) {
      ASSERT_FALSE(groups.members(h).empty());
      EXPECT_LT(groups.order(h), groups.order(g));
      EXPECT_LT(ranks[h], ranks[g]);
    }
    for (const std::uint32_t p : groups.members(g)) EXPECT_EQ(groups.of(p), g);
  }
}

Members some(const Groups& groups, std::mt19937& random) {
  Members of = alive(groups);
  const std::uint32_t begin = draw(random, of.size());
  Members chosen;
  for (std::size_t i = begin; i < std::min<std::size_t>(of.size(), begin + 8); ++i) {
    if (draw(random, 3) == 0) chosen.push_back(of[i]);
  }
  return chosen;
}

TEST(Groups, AreClosedWhereNothingLiesBetweenThemAndStayInOrder) {
  int closed = 0, open = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const std::vector<Ids> above = random_graph(random, 30);
    Groups groups(above, std::vector<double>(above.size(), 0));
    for (int i = 0; i < 12; ++i) {
      const Members of = some(groups, random);
      if (of.size() < 2) continue;
      const bool is_closed = !something_between(groups, of);
      EXPECT_EQ(groups.closed(of), is_closed);
      ++(is_closed ? closed : open);
      if (!is_closed) continue;
      groups.merge(of);
      check_order(groups);
    }
  }
  EXPECT_GT(closed, 50);
  EXPECT_GT(open, 50);
}

TEST(Groups, GrowByEachThatIsClosedWithWhatIsGrown) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(1000 + seed);
    const std::vector<Ids> above = random_graph(random, 30);
    Groups groups(above, std::vector<double>(above.size(), 0));
    Groups one_by_one = groups;
    Members of = some(groups, random);
    if (of.size() < 2) continue;
    std::ranges::sort(of, {}, [&](std::uint32_t g) { return groups.order(g); });
    groups.grow(of);
    std::uint32_t grown = of.front();
    for (std::size_t i = 1; i < of.size(); ++i) {
      if (!something_between(one_by_one, {grown, of[i]})) grown = one_by_one.merge({grown, of[i]});
    }
    for (std::uint32_t p = 0; p < above.size(); ++p) EXPECT_EQ(groups.of(p), one_by_one.of(p));
    check_order(groups);
  }
}

TEST(Groups, WhatLiesOnACycleIsOneGroup) {
  std::vector<Ids> above(5);
  above[1] = {0, 3};
  above[2] = {1};
  above[3] = {2};
  above[4] = {3};
  const Groups groups(above, std::vector<double>(5, 0));
  EXPECT_THAT(groups.members(groups.of(1)), testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_EQ(alive(groups).size(), 3u);
  check_order(groups);
}

}  // namespace
}  // namespace joulediff::match
