#include "rules/boundaries.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace joulediff::rules {
namespace {

using run::Point;

Point point(const std::string& boundary, double joules, const std::string& label = "job") {
  Point p;
  p.label = label;
  p.kind = "inference";
  p.work.unit = "token";
  p.work.count = 1000;
  p.work.model = "llama";
  p.energy.joules = joules;
  p.energy.standing = "measured";
  p.window.seconds = 700;
  p.window.markers = true;
  p.boundary.kind = boundary;
  p.meter.name = boundary + "'s meter";
  p.meter.serial = boundary;
  p.meter.range = "fixed";
  p.meter.uncertainty = 0.01;
  const double each = joules / 1000;
  p.repeats.joules = {each * 1.001, each, each * 0.999};
  return p;
}

Boundaries made(const std::vector<Point>& a, const std::vector<Point>& b = {},
                const std::vector<std::string>& despite = {}) {
  auto table = boundaries(a, b, despite);
  EXPECT_TRUE(table) << (table ? "" : table.error().message);
  return table ? *table : Boundaries();
}

const BoundaryRow& row(const Boundaries& table, const std::string& boundary) {
  return *std::ranges::find(table.rows, boundary, &BoundaryRow::boundary);
}

std::vector<std::string> errors(const Boundaries& table) {
  std::vector<std::string> rules;
  for (const BoundaryObjection& one : table.objections)
    if (one.what.severity == Severity::error) rules.push_back(one.what.rule + " " + one.at);
  return rules;
}

TEST(Boundaries, SavingsAndWhatIsKeptOfThem) {
  const auto table = made({point("rack", 600), point("board", 400), point("node-ac", 500)},
                          {point("board", 280), point("node-ac", 420), point("rack", 510)});
  EXPECT_FALSE(table.refused);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].boundary, "board");
  EXPECT_EQ(table.rows[2].boundary, "rack");
  EXPECT_EQ(table.reference, "board");
  EXPECT_NEAR(row(table, "board").saved->value, 0.12, 1e-12);
  EXPECT_NEAR(row(table, "board").share->value, 0.3, 1e-12);
  EXPECT_FALSE(row(table, "board").kept);
  EXPECT_NEAR(row(table, "node-ac").kept->value, 0.08 / 0.12, 1e-12);
  EXPECT_NEAR(row(table, "rack").kept->value, 0.09 / 0.12, 1e-12);
  EXPECT_LT(row(table, "rack").kept->low, 0.74);
  EXPECT_GT(row(table, "rack").kept->high, 0.76);
  EXPECT_EQ(row(table, "rack").a->over, "node-ac");
  EXPECT_NEAR(row(table, "rack").a->added->value, 0.1, 1e-12);
  EXPECT_FALSE(row(table, "board").a->added);
  EXPECT_EQ(row(table, "rack").a->point, 0U);
}

// Student's t of three runs that spread by 0.1 %: 4.303 x 0.001/sqrt(3) = 0.00248.
TEST(Boundaries, OneMetersErrorCancelsInTheShareAndNotInTheJoules) {
  const Point a = point("board", 400), b = point("board", 280);
  const auto table = made({a}, {b});
  const Interval& share = *row(table, "board").share;
  EXPECT_NEAR(share.high - share.value, std::hypot(0.00248, 0.7 * 0.00248), 2e-5);
  const Interval& saved = *row(table, "board").saved;
  EXPECT_NEAR(saved.high - saved.value, std::hypot(0.4 * 0.00248, 0.28 * 0.00248, 0.01 * 0.12),
              2e-5);
  Point other = b;
  other.meter.serial = "another";
  const auto apart = made({a}, {other});
  const Interval& wider = *row(apart, "board").share;
  EXPECT_NEAR(wider.high - wider.value,
              std::hypot(std::hypot(0.00248, 0.01), 0.7 * std::hypot(0.00248, 0.01)), 2e-5);
  Point unknown = other;
  unknown.meter.uncertainty = {};
  const auto unbounded = made({a}, {unknown});
  EXPECT_FALSE(row(unbounded, "board").share->bounded());
}

TEST(Boundaries, WhatIsNotSurelySavedIsNotKept) {
  const auto table =
      made({point("board", 400), point("rack", 600)}, {point("board", 399.9), point("rack", 590)});
  EXPECT_TRUE(row(table, "board").share->low < 0);
  EXPECT_FALSE(row(table, "rack").kept);
}

TEST(Boundaries, UnknownIsNoZero) {
  Point bare = point("rack", 600);
  bare.energy.joules = {};
  const auto table = made({point("board", 400), bare}, {point("board", 280)});
  EXPECT_FALSE(row(table, "rack").a->per_unit);
  EXPECT_FALSE(row(table, "rack").a->added);
  EXPECT_FALSE(row(table, "rack").b);
  EXPECT_FALSE(row(table, "rack").saved);
}

TEST(Boundaries, OuterLessThanInnerIsRefusedBeyondTheErrorsOnly) {
  EXPECT_EQ(errors(made({point("board", 400), point("node-ac", 380)})),
            (std::vector<std::string>{"BO7 board and node-ac"}));
  EXPECT_TRUE(errors(made({point("board", 400), point("node-ac", 396)})).empty());
  Point vague = point("node-ac", 100);
  vague.meter.uncertainty = {};
  const auto table = made({point("board", 400), vague});
  EXPECT_FALSE(table.refused);
  EXPECT_TRUE(std::ranges::any_of(table.objections, [](const BoundaryObjection& one) {
    return one.what.rule == "BO7" && one.what.severity == Severity::warning;
  }));
  // Of another job it says nothing.
  EXPECT_TRUE(errors(made({point("board", 400), point("rack", 600)},
                          {point("board", 100), point("rack", 300)}))
                  .empty());
  // Nor of boundaries of which neither lies inside the other.
  EXPECT_TRUE(
      errors(made({point("board", 400), point("host", 100), point("node-ac", 600)})).empty());
}

TEST(Boundaries, OneJobIsOfOneWork) {
  Point other = point("rack", 600);
  other.work.unit = "image";
  const auto table = made({point("board", 400), point("node-ac", 500), other});
  EXPECT_TRUE(table.refused);
  EXPECT_EQ(errors(table), (std::vector<std::string>{"WU1 board and rack"}));
  EXPECT_FALSE(row(table, "node-ac").a->added);  // nothing is made of what is refused
  EXPECT_FALSE(made({point("board", 400), other}, {}, {"WU1"}).refused);
  const std::vector<Point> sound{point("board", 400)};
  const std::vector<std::string> nothing{"WU1"};
  EXPECT_EQ(boundaries(sound, {}, nothing).error().code, ExitCode::usage);
}

TEST(Boundaries, BothSidesDoTheSameWork) {
  Point b = point("board", 280);
  b.work.model = "gpt";
  EXPECT_EQ(errors(made({point("board", 400)}, {b})), (std::vector<std::string>{"WU1 board"}));
  EXPECT_EQ(errors(made({point("board", 400)}, {point("rack", 280)})),
            (std::vector<std::string>{"BO1 all"}));
}

TEST(Boundaries, ComponentsAndDevicesNest) {
  Point board = point("board", 400), rack = point("rack", 600);
  board.boundary.includes = {"hbm", "fans"};
  rack.boundary.includes = {"hbm", "switch"};
  rack.hardware.devices = 8;
  board.hardware.devices = 1;
  EXPECT_EQ(errors(made({board, rack})),
            (std::vector<std::string>{"BO8 board and rack", "BO9 board and rack"}));
}

TEST(Boundaries, BothSidesAreOfOneSite) {
  Point a = point("facility", 900), b = point("facility", 700);
  a.facility.energy_boundary = b.facility.energy_boundary = "rack";
  a.facility.pue = b.facility.pue = 1.3;
  const auto table = made({a}, {b});
  EXPECT_FALSE(table.refused);
  EXPECT_TRUE(row(table, "facility").share->bounded());  // the one factor cancels
  EXPECT_FALSE(row(table, "facility").saved->bounded());
  b.facility.pue = 1.1;
  EXPECT_EQ(errors(made({a}, {b})), (std::vector<std::string>{"F1 facility"}));
}

TEST(Boundaries, AreKnownAndGivenOnce) {
  const std::vector<Point> twice{point("board", 400), point("board", 410)};
  EXPECT_EQ(boundaries(twice, {}).error().code, ExitCode::usage);
  const std::vector<Point> unknown{point("", 400)}, strange{point("wall", 400)};
  EXPECT_EQ(boundaries(unknown, {}).error().code, ExitCode::bad_input);
  EXPECT_EQ(boundaries(strange, {}).error().code, ExitCode::bad_input);
}

TEST(Boundaries, LieInsideOneAnotherInPart) {
  EXPECT_TRUE(lies_inside("rail", "board"));
  EXPECT_TRUE(lies_inside("board", "facility"));
  EXPECT_TRUE(lies_inside("host", "node"));
  EXPECT_TRUE(lies_inside("node", "rack"));
  EXPECT_FALSE(lies_inside("rail", "host"));
  EXPECT_FALSE(lies_inside("board", "host"));
  EXPECT_FALSE(lies_inside("node-dc", "node"));
  EXPECT_FALSE(lies_inside("rack", "node-ac"));
  EXPECT_FALSE(lies_inside("board", "board"));
  EXPECT_FALSE(lies_inside("board", "wall"));
}

TEST(Worth, OfWhatIsEstimatedOrScaled) {
  Point p = point("rack", 600);
  EXPECT_NEAR(*margin_of(p).systematic, 0.01, 1e-12);
  p.boundary.estimated = "interconnect";
  EXPECT_FALSE(margin_of(p).random);  // how much of it is not said
  EXPECT_FALSE(margin_of(p).with_systematic());
  p.boundary.estimated_share = 0.26;
  EXPECT_NEAR(*margin_of(p).systematic, 0.01, 1e-12);
  EXPECT_GT(*margin_of(p).random, 0.26);  // one meter on both sides does not see it
  EXPECT_EQ(standing_of(p), "measured, but for 26 % (interconnect)");
  Point site = point("facility", 900);
  site.facility.pue = 1.5;
  EXPECT_FALSE(scaled_by_pue(site));  // of what is not said
  site.facility.energy_boundary = "rack";
  EXPECT_EQ(standing_of(site), "modelled: the energy of the rack times a PUE of 1.5");
  EXPECT_FALSE(margin_of(site).systematic);
  EXPECT_EQ(standing_of(Point()), "unknown");
}

TEST(Worth, QuotientsOfWhatMayBeNothingAreUnbounded) {
  const Interval one = Interval::around(1, 0.1);
  EXPECT_FALSE((one / Interval::around(0.05, 0.1)).bounded());
  EXPECT_NEAR((one / Interval::around(2, 0.5)).high, 1.1 / 1.5, 1e-12);
  EXPECT_NEAR((Interval::around(-1, 0.1) / Interval::around(2, 0.5)).low, -1.1 / 1.5, 1e-12);
  EXPECT_FALSE((one - Interval::unbounded(3)).bounded());
}

}  // namespace
}  // namespace joulediff::rules
