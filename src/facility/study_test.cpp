#include "facility/study.h"

#include <cmath>

#include <gmock/gmock.h>

#include "facility/test_plans.h"

namespace joulediff::facility {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

// No spare, nothing between meter and wall: a replica (4 a second, half of it in time) at 1 a
// second.
//   A: 100 + 0.75 x 50 = 137.5 W; B: 150 + 0 = 150 W.
const std::string kSimpleSite = "[site]\npue = 1\nredundancy = 0\n";
const std::string kSimpleA = R"([[alternatives]]
name = "A"
boundary = "node"
joules_per_unit = 100
throughput = 4
idle_watts = 50
)";
const std::string kSimpleB = R"([[alternatives]]
name = "B"
boundary = "node"
joules_per_unit = 150
throughput = 4
idle_watts = 0
)";
const std::string kSimple = kHead + kService + kSlo + kSimpleSite + kSimpleA + kSimpleB;

Study study_of(const std::string& text) {
  auto plan = read_plan(text, "plan.toml", TestFiles().surroundings());
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? study(std::move(*plan)) : Study();
}

std::optional<BreakEven> break_even(const Study& study, const std::string& key) {
  for (const BreakEven& one : study.pairs.at(0).break_even)
    if (study.plan.inputs[one.input.index()].key == key) return one;
  return std::nullopt;
}

double value(const Study& study, std::size_t alternative, std::string_view key) {
  for (std::size_t i = 0; i < measures().size(); ++i)
    if (measures()[i].key == key) return study.subjects[alternative].values[i].base;
  return std::nan("");
}

auto rule(const char* name) {
  return Contains(Field(&Diagnostic::rule, std::string("facility.") + name));
}

// A leaps at each unit a second, B at every second one. In watts of waiting, at 0.5, 0.9 and 2.5 a
// second: A (1 - 0.25) x 100, 55, 175 and B (1 - 0.125) x 190, 147, 261. A is better at both ends
// of the range, and not above 1 a second: (2 - 0.5) x 100 against (1 - 0.25) x 190.
TEST(Study, AnOrderThatTurnsBetweenTheEndsIsInTheRange) {
  std::string text = replaced(kSimple, "per_year = 31536000",
                              "per_year = { low = 15768000, base = 28382400, high = 78840000 }");
  text = replaced(text, kSimpleA, R"([[alternatives]]
name = "A"
boundary = "node"
joules_per_unit = 1e-9
throughput = 2
idle_watts = 100
)");
  text = replaced(text, kSimpleB, R"([[alternatives]]
name = "B"
boundary = "node"
joules_per_unit = 1e-9
throughput = 4
idle_watts = 190
)");
  const Study study = study_of(text);
  ASSERT_EQ(study.pairs.size(), 1u);
  EXPECT_EQ(study.pairs[0].best, 0u);
  const auto turns = break_even(study, "service.per_year");
  ASSERT_TRUE(turns);
  EXPECT_TRUE(turns->within_range);
  EXPECT_NEAR(turns->value, 31536000, 40);
  EXPECT_GT(study.pairs[0].tornado.at(0).at_low, 0);
  EXPECT_GT(study.pairs[0].tornado.at(0).at_high, 0);
  EXPECT_LE(study.pairs[0].difference.low, 0);
}

TEST(Study, RanksAndDiffers) {
  const Study study = study_of(kSimple);
  EXPECT_THAT(study.ranking, testing::ElementsAre(0u, 1u));
  EXPECT_NEAR(study.pairs[0].difference.base, 12.5 / 150, 1e-9);
  EXPECT_NEAR(value(study, 0, "site_joules_per_unit"), 137.5, 1e-9);
  EXPECT_NEAR(value(study, 0, "idle_joules_per_unit"), 37.5, 1e-9);
  EXPECT_NEAR(value(study, 0, "site_joules_per_unit_in_time"), 137.5 / 0.99, 1e-9);
}

// A and B are equal where 100 + 0.75 p = 150, p = 66.667; where j + 37.5 = 150, j = 112.5; where
// B's joules are 137.5; and where at a demand of d a second 100 d + (1 - d/4) 50 = 150 d, d = 0.8.
TEST(Study, BreakEvenByHand) {
  const Study study = study_of(kSimple);
  EXPECT_NEAR(break_even(study, "A.idle_watts")->value, 66.0 + 2.0 / 3, 1e-6);
  EXPECT_NEAR(break_even(study, "A.joules_per_unit")->value, 112.5, 1e-6);
  EXPECT_NEAR(break_even(study, "B.joules_per_unit")->value, 137.5, 1e-6);
  EXPECT_NEAR(break_even(study, "service.per_year")->value, 0.8 * 31536000, 1);
  EXPECT_FALSE(break_even(study, "site.pue"));  // both sides alike
  EXPECT_FALSE(break_even(study, "A.idle_watts")->within_range);
  EXPECT_THAT(study.diagnostics, Not(rule("flips")));
}

TEST(Study, AFlipWithinTheRangeIsSaid) {
  const Study study = study_of(
      replaced(kSimple, "idle_watts = 50", "idle_watts = { low = 40, base = 50, high = 70 }"));
  EXPECT_TRUE(break_even(study, "A.idle_watts")->within_range);
  ASSERT_THAT(study.diagnostics, rule("flips"));
}

// A's idle watts from 40 to 70: A is 130 and 152.5 W. B - A over the larger: 20/150 and -2.5/152.5.
// A's joules from 90 to 110: 127.5 and 147.5 W, so 22.5/150 and 2.5/150.
TEST(Study, TornadoByHand) {
  std::string text =
      replaced(kSimple, "idle_watts = 50", "idle_watts = { low = 40, base = 50, high = 70 }");
  text = replaced(text, "joules_per_unit = 100",
                  "joules_per_unit = { low = 90, base = 100, high = 110 }");
  const Study study = study_of(text);
  const auto& tornado = study.pairs[0].tornado;
  ASSERT_EQ(tornado.size(), 2u);
  EXPECT_EQ(study.plan.inputs[tornado[0].input.index()].key, "A.idle_watts");
  EXPECT_NEAR(tornado[0].at_low, 20.0 / 150, 1e-9);
  EXPECT_NEAR(tornado[0].at_high, -2.5 / 152.5, 1e-9);
  EXPECT_NEAR(tornado[1].at_low, 22.5 / 150, 1e-9);
  EXPECT_NEAR(tornado[1].at_high, 2.5 / 150, 1e-9);
  // Of A's energy: down by 7.5 (idle) and 10 (work), up by 15 and 10, as roots of sums of squares.
  for (std::size_t i = 0; i < measures().size(); ++i) {
    if (measures()[i].key != "site_joules_per_unit") continue;
    EXPECT_NEAR(study.subjects[0].values[i].low, 137.5 - std::hypot(7.5, 10), 1e-9);
    EXPECT_NEAR(study.subjects[0].values[i].high, 137.5 + std::hypot(15, 10), 1e-9);
  }
}

// What both share moves both: the PUE changes each year's energy and not who is better.
TEST(Study, SharedInputsCancel) {
  const Study study =
      study_of(replaced(kSimple, "pue = 1", "pue = { low = 1.1, base = 1.2, high = 1.8 }"));
  EXPECT_NEAR(study.pairs[0].difference.low, study.pairs[0].difference.base, 1e-12);
  EXPECT_NEAR(value(study, 0, "site_joules_per_unit"), 137.5 * 1.2, 1e-9);
  EXPECT_NEAR(study.subjects[0].device.base, 100, 1e-12);  // the device knows no PUE
  EXPECT_EQ(study.subjects[0].device.low, study.subjects[0].device.high);
}

// Both alternatives run on the same node, so what it draws is one input of [replica]: its range
// moves both years, and the difference only by its share of the larger. 137.5 + 100 and 150 + 100
// watts with rest at 100: 12.5/250; at 0: 12.5/150.
TEST(Study, WhatAlternativesShareIsOneInput) {
  std::string text = replaced(kSimple, "[site]", R"([replica]
rest_watts = { low = 0, base = 50, high = 100 }
supply_efficiency = 1
[site])");
  for (const char* name : {"\"A\"", "\"B\""})
    text = replaced(text, std::string("name = ") + name + "\nboundary = \"node\"",
                    std::string("name = ") + name + "\nboundary = \"board\"");
  const Study study = study_of(text);
  const auto& tornado = study.pairs[0].tornado;
  ASSERT_EQ(tornado.size(), 1u);
  EXPECT_EQ(study.plan.inputs[tornado[0].input.index()].key, "replica.rest_watts");
  EXPECT_NEAR(tornado[0].at_low, 12.5 / 150, 1e-9);
  EXPECT_NEAR(tornado[0].at_high, 12.5 / 250, 1e-9);
  EXPECT_FALSE(break_even(study, "replica.rest_watts"));
}

// An alternative's own number goes before the shared one; energies of a node leave out what they
// hold.
TEST(Study, AnAlternativesOwnNumberGoesFirst) {
  const Study study = study_of(replaced(kSimple, "[site]", R"([replica]
idle_watts = 1000
rest_watts = 1000
supply_efficiency = 0.5
[site])"));
  EXPECT_NEAR(value(study, 0, "site_joules_per_unit"), 137.5, 1e-9);
}

TEST(Study, UnequalWorkIsNotRanked) {
  const Study study = study_of(
      replaced(kSimple, "idle_watts = 0", "idle_watts = 0\nreplicas = 1\nslo_share = 0.5"));
  EXPECT_FALSE(study.same_work);
  EXPECT_TRUE(study.pairs.empty());
  EXPECT_THAT(study.diagnostics, rule("unequal_work"));
  EXPECT_THAT(study.diagnostics, rule("late"));
}

// 20 % a year for three years: 1.728 times the work. A: 172.8 + (1 - 0.432) x 50 = 201.2 W.
TEST(Study, GrowthByHand) {
  const Study study =
      study_of(replaced(kSimple, "peak_factor = 1",
                        "peak_factor = 1\nyears = 3\ngrowth = { low = 0, base = 0.2, high = 1 }"));
  EXPECT_NEAR(study.demand.factor.base, 1.728, 1e-12);
  EXPECT_NEAR(study.demand.energy[0].base / 31536000, 201.2, 1e-9);
  EXPECT_NEAR(study.demand.energy[0].low / 31536000, 137.5, 1e-9);
  EXPECT_EQ(study.demand.replicas[0].high, 4);                        // 8 a second, 2 each
  EXPECT_NEAR(value(study, 0, "site_joules_per_unit"), 137.5, 1e-9);  // the year itself stands
}

// A saves 12.5 W of B; a fifth of it is taken back.
TEST(Study, ReboundByHand) {
  const Study study =
      study_of(replaced(kSimple, "peak_factor = 1",
                        "peak_factor = 1\nrebound = { low = 0, base = 0.2, high = 0.4 }"));
  const Rebound& rebound = study.rebound.at(0);
  EXPECT_NEAR(rebound.saving / 31536000, 12.5, 1e-9);
  EXPECT_NEAR(rebound.taken_back.base / 31536000, 2.5, 1e-9);
  EXPECT_NEAR(rebound.left.low / 31536000, 7.5, 1e-9);
  EXPECT_NEAR(rebound.left.high / 31536000, 12.5, 1e-9);
  EXPECT_THAT(study.diagnostics, Not(rule("rebound")));
}

TEST(Study, WhatIsNotSaidIsSaid) {
  const Study study = study_of(kSimple);
  for (const char* name : {"peak_from_mean", "rebound", "growth", "pue_source", "no_range"})
    EXPECT_THAT(study.diagnostics, rule(name));
  EXPECT_TRUE(std::isnan(study.demand.factor.base));
  EXPECT_TRUE(std::isnan(value(study, 0, "cost")));
  EXPECT_TRUE(std::isnan(value(study, 0, "sci")));
}

// A is cheaper by energy and B by carbon, if A's hardware took enough of it: 12.5 W for a year are
// 109.5 kWh, at 400 g/kWh 43.8 kg. A's embodied carbon is 100 kg x 0.5 / 4 years = 12.5 kg, so with
// 1000 kg it is 125 kg.
TEST(Study, RanksByWhatIsAsked) {
  const std::string carbon = "[alternatives.embodied]\nlifetime_years = 4\nshare = 0.5\nkg = ";
  const auto text = [&](const std::string& kg) {
    return "rank_by = \"carbon\"\n" + kHead + kService + kSlo + kSimpleSite + kCarbon + kSimpleA +
           carbon + kg + "\n" + kSimpleB + carbon + "0\n";
  };
  EXPECT_EQ(study_of(text("100")).ranking[0], 0u);
  EXPECT_EQ(study_of(text("1000")).ranking[0], 1u);
  // Equal where kg x 0.5 / 4 = 43.8.
  EXPECT_NEAR(break_even(study_of(text("100")), "A.embodied.kg")->value, 350.4, 1e-6);
}

}  // namespace
}  // namespace joulediff::facility
