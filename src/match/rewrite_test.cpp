// Pairs of programs that compute the same in different ways, by the thousand (JOULEDIFF_REWRITES,
// 300 unless told): no region may hold different work on its two sides, and a mistake in one
// operator of one side spoils nothing but what depends on it. Programs in which two different
// values are nearly equal (x and x + y, where y is a thousandth of a thousandth of x) are left out:
// which of them is which, nobody can tell by value.

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>

#include <gtest/gtest.h>

#include "match/test_checks.h"
#include "match/test_rewrites.h"

namespace joulediff::match::testing {
namespace {

using Instructions = std::set<std::uint32_t>;

std::uint32_t pairs_wanted() {
  const char* const text = std::getenv("JOULEDIFF_REWRITES");
  return text != nullptr ? static_cast<std::uint32_t>(std::atoi(text)) : 300;
}

// Without views and what nobody needs.
Operators needed(const run::Run& run, const Operators& operators) {
  Operators found;
  for (const run::OperatorId id : operators) {
    const run::Operator& op = run.operators[id.index()];
    if (!op.view && op.module != "extra") found.push_back(id);
  }
  return found;
}

// What the operators are there for.
Instructions work_of(const run::Run& run, const Operators& operators) {
  Instructions found;
  for (const run::OperatorId id : needed(run, operators))
    found.insert(static_cast<std::uint32_t>(std::stoul(run.operators[id.index()].module)));
  return found;
}

// Some two values are within ten tolerances of each other and not the same.
bool is_ambiguous(const run::Run& run) {
  const auto near = [](const std::vector<float>& x, const std::vector<float>& y) {
    double apart = 0, squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      apart += std::pow(x[i] - y[i], 2);
      squares += std::pow(x[i], 2);
    }
    return apart > 0 && apart <= 1e-8 * squares;
  };
  for (std::size_t i = 0; i < run.tensors.size(); ++i) {
    const run::Tensor& x = run.tensors[i];
    for (std::size_t j = 0; j < i; ++j) {
      const run::Tensor& y = run.tensors[j];
      if (!x.sample.empty() && x.shape == y.shape && x.sample.size() == y.sample.size() &&
          near(x.sample, y.sample))
        return true;
    }
  }
  return false;
}

struct Pair {
  Source source;
  run::Run a, b;
};

// Nothing: the programs are ambiguous.
std::optional<Pair> random_pair(std::uint32_t seed) {
  Lot lot(seed);
  Pair pair{random_source(lot), {}, {}};
  pair.a = Lowering(pair.source, 2 * seed).run();
  pair.b = Lowering(pair.source, 2 * seed + 1).run();
  if (is_ambiguous(pair.a) || is_ambiguous(pair.b)) return std::nullopt;
  return pair;
}

// Calls `check` with as many pairs as are wanted, and their seeds.
template <class Check>
void for_each_pair(Check check) {
  const std::uint32_t wanted = pairs_wanted();
  std::uint32_t seed = 0;
  for (std::uint32_t made = 0; made < wanted && !::testing::Test::HasFatalFailure(); ++seed) {
    std::optional<Pair> pair = random_pair(seed);
    if (!pair) continue;
    ++made;
    check(*pair, seed);
  }
  std::cout << wanted << " pairs, and " << seed - wanted << " left out\n";
}

TEST(Rewrites, NoRegionHoldsDifferentWork) {
  std::size_t regions = 0, flagged = 0, operators = 0, unmatched = 0;
  for_each_pair([&](const Pair& pair, std::uint32_t seed) {
    const Match m = checked(pair.a, pair.b);
    for (const Region& region : m.regions) {
      ++regions;
      flagged += region.inputs_differ;
      if (!region.inputs_differ) {
        ASSERT_EQ(work_of(pair.a, region.a), work_of(pair.b, region.b)) << "pair " << seed;
      }
    }
    operators += pair.source.size();
    unmatched += work_of(pair.a, m.unmatched_a).size() + work_of(pair.b, m.unmatched_b).size();
  });
  std::cout << operators << " instructions, " << regions << " regions, of " << flagged
            << " the inputs differ; " << unmatched << " instructions unmatched\n";
  EXPECT_LE(flagged, regions / 1000);
  EXPECT_LE(unmatched, operators / 1000);
}

// The regions of which no work is among `changed`, by their operators of A.
std::set<Operators> regions_without(const Instructions& changed, const Pair& pair, const Match& m) {
  std::set<Operators> found;
  for (const Region& region : m.regions) {
    Instructions work = work_of(pair.a, region.a);
    work.merge(work_of(pair.b, region.b));
    const bool touched =
        std::ranges::any_of(work, [&](std::uint32_t i) { return changed.contains(i); });
    if (!touched && !work.empty()) found.insert(needed(pair.a, region.a));
  }
  return found;
}

// One value of B is wrong: what depends on it may not match, all else matches as it did, and what
// matches is the same work.
TEST(Rewrites, AMistakeSpoilsNothingButWhatDependsOnIt) {
  std::size_t kept = 0;
  for_each_pair([&](Pair& pair, std::uint32_t seed) {
    const auto wrong = Lot(seed + 7).below(pair.source.size());
    const Instructions changed = downstream(pair.source, wrong);
    const auto before = regions_without(changed, pair, checked(pair.a, pair.b));
    pair.b = Lowering(pair.source, 2 * seed + 1, wrong).run();
    if (is_ambiguous(pair.b)) return;
    const Match m = checked(pair.a, pair.b);
    const auto after = regions_without(changed, pair, m);
    kept += after.size();
    for (const Operators& region : before)
      ASSERT_TRUE(after.contains(region)) << "pair " << seed << ", instruction " << wrong;
  });
  EXPECT_GT(kept, 0u);
}

// A value that is made wrong and mended at once is more work, in its own region or in the one of
// what uses it, and nothing else.
TEST(Rewrites, AMistakeThatIsMendedStaysInItsRegion) {
  for_each_pair([&](Pair& pair, std::uint32_t seed) {
    const auto wrong = Lot(seed + 7).below(pair.source.size());
    pair.b = Lowering(pair.source, 2 * seed + 1, wrong, true).run();
    if (is_ambiguous(pair.b)) return;
    const Match m = checked(pair.a, pair.b);
    for (const Region& region : m.regions) {
      Instructions of_a = work_of(pair.a, region.a), of_b = work_of(pair.b, region.b);
      of_a.erase(wrong);
      of_b.erase(wrong);
      if (!region.inputs_differ) {
        ASSERT_EQ(of_a, of_b) << "pair " << seed << ", instruction " << wrong;
      }
    }
  });
}

}  // namespace
}  // namespace joulediff::match::testing
