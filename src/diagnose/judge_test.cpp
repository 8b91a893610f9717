#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/compare.h"
#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using testing::program;
using testing::regions;

// One region: B needs `joules` and `seconds` where A needs 10 J and 1 ms of a run of 100 J.
Outcome verdict(double joules, double seconds = 1e-3, bool agree = true,
                const std::vector<double>& wobble = {1, 1.002}, bool inputs_differ = false) {
  const auto a = program({Call{"aten.mm", 10, 1e-3}}, wobble);
  const auto b = program({Call{"aten.bmm", joules, seconds}}, wobble);
  match::Match match = regions({{1, 1}});
  match.regions.front().outputs_agree = agree;
  match.regions.front().inputs_differ = inputs_differ;
  return testing::compare(a, b, match).regions.front().outcome;
}

TEST(Verdict, WasteBeyondTheThreshold) {
  EXPECT_EQ(verdict(8), Outcome::waste);
}
TEST(Verdict, EqualInsideIt) {
  EXPECT_EQ(verdict(9.8), Outcome::equal);
}
TEST(Verdict, UndecidedAcrossIt) {
  EXPECT_EQ(verdict(9.0), Outcome::undecided);
}

TEST(Verdict, TradeOffIfTheCheaperSideIsSlower) {
  EXPECT_EQ(verdict(8, 1.009e-3), Outcome::waste);
  EXPECT_EQ(verdict(8, 1.011e-3), Outcome::trade_off);
  // B is the dear side here, so A is the one that may not be slower.
  EXPECT_EQ(verdict(20, 0.9e-3), Outcome::trade_off);
}

TEST(Verdict, TradeOffIfOutputsDiffer) {
  EXPECT_EQ(verdict(8, 1e-3, false), Outcome::trade_off);
}

TEST(Verdict, NothingIsDecidedWithoutAFloor) {
  EXPECT_EQ(verdict(8, 1e-3, true, {1}), Outcome::undecided);
  EXPECT_EQ(verdict(10, 1e-3, true, {1}), Outcome::undecided);
}

TEST(Verdict, NothingIsDecidedInsideTheFloor) {
  EXPECT_EQ(verdict(8, 1e-3, true, {1, 1.5}), Outcome::undecided);
}

TEST(Verdict, NothingIsDecidedWhereInputsDiffer) {
  EXPECT_EQ(verdict(8, 1e-3, true, {1, 1.002}, true), Outcome::undecided);
}

TEST(Verdict, NothingIsDecidedWhereACostIsUnknown) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.add", 1}});
  auto b = program({Call{"aten.bmm", 5}, Call{"aten.add", 1}});
  for (auto& block : b.cost.blocks) block.operators[1].known = false;
  b.cost.operators[1].known = false;
  const Comparison c = testing::compare(a, b, regions({{2, 2}}));
  EXPECT_EQ(c.regions.front().outcome, Outcome::undecided);
  EXPECT_FALSE(c.regions.front().b.known);
  EXPECT_TRUE(c.findings.empty());
}

// 0.4 J of 100 J is less than half a percent.
TEST(Verdict, TooSmallASavingIsNoFinding) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.add", 0.8}}, {1, 1.001});
  const auto b = program({Call{"aten.mm", 10}, Call{"aten.sub", 0.4}}, {1, 1.001});
  const Comparison c = testing::compare(a, b, regions({{1, 1}, {1, 1}}));
  EXPECT_TRUE(c.findings.empty());
  EXPECT_EQ(c.regions[1].outcome, Outcome::undecided);
}

// Twelve layers with the same signature are one measurement: Holm must not punish them.
TEST(Verdict, ASavingThatMayBeNoneIsNoWaste) {
  EXPECT_EQ(verdict(5, 1e-3, true, {0.98, 1.02}), Outcome::waste);
  // The ratio is still sure, both sides' blocks pooled; the joules of each side alone are not.
  EXPECT_EQ(verdict(5, 1e-3, true, {0.95, 1.05}), Outcome::undecided);
}

TEST(Verdict, RepeatedRegionsAreOneTest) {
  std::vector<Call> a, b;
  std::vector<std::pair<std::size_t, std::size_t>> sizes;
  for (int layer = 0; layer < 12; ++layer) {
    a.push_back({"aten.mm", 2});
    b.push_back({"aten.bmm", 1.5});
    sizes.emplace_back(1, 1);
  }
  const std::vector<double> wobble{1, 1.02};
  const Comparison c = testing::compare(program(a, wobble), program(b, wobble), regions(sizes));
  for (const RegionResult& region : c.regions) EXPECT_EQ(region.outcome, Outcome::waste);
  ASSERT_EQ(c.findings.size(), 1u);
  EXPECT_EQ(c.findings.front().regions.size(), 12u);
  EXPECT_NEAR(c.findings.front().saving.joules.value, 6, 0.1);

  // Twelve different regions are twelve tests: at this noise the same difference is undecided.
  for (std::size_t i = 0; i < a.size(); ++i) a[i].signature = "mm" + std::to_string(i);
  const Comparison strict =
      testing::compare(program(a, wobble), program(b, wobble), regions(sizes));
  EXPECT_EQ(strict.regions.front().outcome, Outcome::undecided);
}

TEST(Compare, ItselfHasNoFindings) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.add", 3}}, {1, 1.05, 0.93});
  match::Match match = regions({{1, 1}});
  match.unmatched_a = match.unmatched_b = {run::OperatorId(1)};
  const Comparison c = testing::compare(a, a, match);
  EXPECT_TRUE(c.findings.empty());
  EXPECT_EQ(c.whole.value, 0);
  EXPECT_EQ(c.regions.front().difference.value, 0);
}

TEST(Compare, SwapTurnsSidesAndSigns) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.pow", 6}}, {1, 1.002});
  const auto b = program({Call{"aten.mm", 10.1}, Call{"aten.gelu", 2}}, {1, 1.002});
  const match::Match match = regions({{1, 1}, {1, 1}});
  const Comparison forth = testing::compare(a, b, match);
  const Comparison back = testing::compare(b, a, match);
  ASSERT_EQ(forth.findings.size(), 1u);
  ASSERT_EQ(back.findings.size(), 1u);
  EXPECT_EQ(forth.findings[0].side, Side::a);
  EXPECT_EQ(back.findings[0].side, Side::b);
  EXPECT_EQ(forth.findings[0].cause.key, back.findings[0].cause.key);
  EXPECT_EQ(forth.findings[0].saving.joules, back.findings[0].saving.joules);
  EXPECT_NEAR(forth.regions[1].difference.low, -back.regions[1].difference.high, 1e-12);
}

TEST(Compare, GateNeedsAFloorAndACertainExcess) {
  const auto a = program({Call{"aten.mm", 10}}, {1, 1.001}, 100);
  const auto b = program({Call{"aten.mm", 10}}, {1, 1.001}, 104);
  const match::Match match = regions({{1, 1}});
  const Comparison c = testing::compare(a, b, match);
  EXPECT_EQ(gate(c, 0.02), Gate::failed);
  EXPECT_EQ(gate(c, 0.04), Gate::undecided);
  EXPECT_EQ(gate(c, 0.06), Gate::passed);
  const auto once = program({Call{"aten.mm", 10}}, {1}, 104);
  EXPECT_EQ(gate(testing::compare(a, once, match), 0.02), Gate::undecided);
}

TEST(Compare, WorkOfOneSideAloneIsRedundant) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.mm", 5, 1e-3}}, {1, 1.001});
  const auto b = program({Call{"aten.mm", 10}}, {1, 1.001});
  match::Match match = regions({{1, 1}});
  match.unmatched_a = {run::OperatorId(1)};
  const Comparison c = testing::compare(a, b, match);
  ASSERT_EQ(c.findings.size(), 1u);
  EXPECT_EQ(c.findings[0].outcome, Outcome::waste);
  EXPECT_EQ(c.findings[0].cause.kind, CauseKind::redundant);
  EXPECT_EQ(c.findings[0].cause.key, "operators:aten.mm");
  EXPECT_TRUE(c.findings[0].regions.empty());
  EXPECT_NEAR(c.findings[0].share_of_run, 0.05, 1e-3);

  match.regions.front().outputs_agree = false;
  EXPECT_EQ(testing::compare(a, b, match).findings.back().outcome, Outcome::undecided);
}

TEST(Compare, UnmatchedWorkOnBothSidesIsNotRedundant) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.mm", 5}});
  const auto b = program({Call{"aten.mm", 10}, Call{"aten.bmm", 3}});
  match::Match match = regions({{1, 1}});
  match.unmatched_a = match.unmatched_b = {run::OperatorId(1)};
  EXPECT_TRUE(testing::compare(a, b, match).findings.empty());
}

// Two processes that differ by more than their mean: a region's joules end at 0, and so do those of
// unmatched work, but the saving keeps its whole error.
TEST(Compare, JoulesHaveNoNegativeInterval) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.mul", 5}}, {0.2, 1.8});
  const auto b = program({Call{"aten.bmm", 10}}, {1, 1});
  match::Match match = regions({{1, 1}});
  match.unmatched_a = {run::OperatorId(1)};
  const Comparison c = testing::compare(a, b, match);
  EXPECT_EQ(c.regions.front().a.energy.low, Joules(0));
  EXPECT_GT(c.regions.front().a.energy.high, Joules(20));
  EXPECT_EQ(c.unmatched_a.energy.low, Joules(0));
  ASSERT_EQ(c.findings.size(), 1u);
  EXPECT_LT(c.findings.front().saving.low, Joules(0));
}

TEST(Compare, UnmatchedWorkOfUnknownEnergyIsNotZero) {
  auto a = program({Call{"aten.mm", 10}, Call{"aten.mul", 5}});
  const auto b = program({Call{"aten.bmm", 10}});
  a.cost.operators[1].known = false;
  for (attribute::BlockCosts& block : a.cost.blocks) block.operators[1].known = false;
  match::Match match = regions({{1, 1}});
  match.unmatched_a = {run::OperatorId(1)};
  EXPECT_FALSE(testing::compare(a, b, match).unmatched_a.known);
}

TEST(Compare, FindingsComeInOrderOfSaving) {
  const auto a = program({Call{"aten.mm", 10}, Call{"aten.pow", 30}, Call{"aten.sin", 20}});
  const auto b = program({Call{"aten.bmm", 5}, Call{"aten.gelu", 10}, Call{"aten.cos", 10}});
  const Comparison c = testing::compare(a, b, regions({{1, 1}, {1, 1}, {1, 1}}));
  ASSERT_EQ(c.findings.size(), 3u);
  EXPECT_EQ(c.findings[0].cause.key, "operators:aten.pow");
  EXPECT_EQ(c.findings[1].cause.key, "operators:aten.sin");
  EXPECT_EQ(c.findings[2].rank, 3u);
}

}  // namespace
}  // namespace joulediff::diagnose
