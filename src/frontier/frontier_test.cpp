#include "frontier/frontier.h"

#include <algorithm>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "frontier/direction.h"
#include "frontier/groups.h"

namespace joulediff::frontier {
namespace {

using run::Point;

// 600 s at 500 W, by one meter.
Point point(const std::string& label, double joules, double quality, double latency = 1) {
  Point p;
  p.label = label;
  p.kind = "inference";
  p.work.unit = "token";
  p.work.count = 600000;
  p.work.model = "llama";
  p.work.dataset = "orca";
  p.quality.metric = "ROUGE-1";
  p.quality.value = quality;
  p.scenario.arrival = "offline";
  p.scenario.slo_percentile = 99;
  p.scenario.observed_seconds = latency;
  p.energy.joules = joules;
  p.energy.standing = "measured";
  p.window.seconds = 600;
  p.window.markers = true;
  p.boundary.kind = "node-ac";
  p.meter.name = "WT310E";
  p.meter.serial = "S1";
  p.meter.range = "fixed";
  p.meter.uncertainty = 0.003;
  return p;
}

Frontier made(const std::vector<Point>& points, const Question& question = {}) {
  auto result = frontier(points, question);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? *result : Frontier();
}

std::map<std::string, const Entry*> by_label(const Frontier& f, const std::vector<Point>& points) {
  std::map<std::string, const Entry*> entries;
  for (const Group& group : f.groups)
    for (const Entry& entry : group.entries) entries[points[entry.point].label] = &entry;
  return entries;
}

TEST(Frontier, LessEnergyAtLowerQualityIsATrade) {
  const std::vector<Point> points{point("fp16", 300000, 44.5), point("int4", 210000, 43.1),
                                  point("slow", 310000, 44.5, 2), point("near", 301000, 44.5)};
  const Frontier f = made(points);
  ASSERT_EQ(f.groups.size(), 1U);
  const auto entries = by_label(f, points);
  EXPECT_EQ(entries.at("int4")->placement.standing, Standing::best);
  EXPECT_EQ(entries.at("slow")->placement.standing, Standing::dominated);
  // Not repeated, so 1 % lies within what two runs differ by.
  EXPECT_EQ(entries.at("near")->placement.standing, Standing::undecided);
  EXPECT_EQ(entries.at("fp16")->placement.standing, Standing::undecided);
  EXPECT_TRUE(entries.at("fp16")->assumed);
  EXPECT_EQ(f.groups[0].least, (std::vector<std::size_t>{0}));
  EXPECT_EQ(points[f.groups[0].entries[0].point].label, "int4");
}

TEST(Frontier, RepeatsDecideWhatOneRunDoesNot) {
  std::vector<Point> points{point("a", 300000, 44.5), point("b", 303600, 44.5)};
  for (Point& p : points) {
    const double each = *p.energy.joules / *p.work.count;
    p.repeats.joules = {each * 1.0002, each, each * 0.9998};
    p.repeats.seconds = {0.001, 0.001, 0.001};
    p.scenario.observed_uncertainty = 0;
  }
  const Frontier f = made(points);
  EXPECT_EQ(by_label(f, points).at("b")->placement.standing, Standing::dominated);
  EXPECT_TRUE(f.groups[0].one_meter);

  // Two meters: what each is off by no longer cancels.
  points[1].meter.serial = "S2";
  for (Point& p : points) p.meter.uncertainty = 0.01;
  const Frontier g = made(points);
  EXPECT_FALSE(g.groups[0].one_meter);
  EXPECT_EQ(by_label(g, points).at("b")->placement.standing, Standing::undecided);

  // Nobody says how good they are: nothing is decided, however large the difference.
  points[1].energy.joules = 910800;
  for (double& joules : points[1].repeats.joules) joules *= 3;
  for (Point& p : points) p.meter.uncertainty = {};
  EXPECT_EQ(by_label(made(points), points).at("b")->placement.standing, Standing::undecided);
}

TEST(Frontier, ARecordingThatWasNotRepeatedDecidesNothing) {
  std::vector<Point> points{point("a", 300000, 44.5), point("b", 600000, 44.5)};
  points[0].kind = points[1].kind = "run";
  EXPECT_EQ(by_label(made(points), points).at("b")->placement.standing, Standing::undecided);
}

TEST(Frontier, UnequalWorkIsToldApart) {
  std::vector<Point> points{point("a", 300000, 44.5),       point("image", 100, 44.5),
                            point("rack", 400000, 44.5),    point("server", 300000, 44.5),
                            point("batched", 200000, 44.5), point("p90", 100000, 44.5),
                            point("bleu", 100000, 44.5)};
  points[1].work.unit = "image";
  points[2].boundary.kind = "rack";
  points[3].scenario.arrival = "poisson 20/s";
  points[4].scenario.batch = 64;
  points[0].scenario.batch = 8;
  points[5].scenario.slo_percentile = 90;
  points[6].quality.metric = "BLEU";
  const auto apart = groups(points);
  EXPECT_EQ(apart, (std::vector<std::vector<std::size_t>>{{0, 4}, {1}, {2}, {3}, {5}, {6}}));
  // A rule that is set aside: but a token is no image whatever is set aside.
  const std::vector<std::string> despite{"SC1", "WU1", "Q1"};
  EXPECT_EQ(groups(points, despite),
            (std::vector<std::vector<std::size_t>>{{0, 3, 4}, {1}, {2}, {5}, {6}}));
}

TEST(Frontier, WhatFitsToSeveralBelongsToNone) {
  std::vector<Point> points{point("board", 200000, 44.5), point("rack", 400000, 44.5),
                            point("unknown", 300000, 44.5), point("board too", 210000, 44)};
  points[0].boundary.kind = points[3].boundary.kind = "board";
  points[1].boundary.kind = "rack";
  points[2].boundary.kind.clear();
  EXPECT_EQ(groups(points), (std::vector<std::vector<std::size_t>>{{0, 3}, {1}, {2}}));
}

TEST(Frontier, UnsoundAndIncompleteStandApart) {
  std::vector<Point> points{point("good", 300000, 44.5), point("invalid", 100000, 44.5),
                            point("mute", 100000, 44.5), point("missed", 100000, 40)};
  points[1].work.valid = false;
  points[2].scenario.observed_seconds = {};
  points[3].quality.target = 44;
  const auto f = made(points);
  const auto entries = by_label(f, points);
  EXPECT_EQ(entries.at("good")->placement.standing, Standing::best);
  EXPECT_EQ(entries.at("invalid")->entrance, Entrance::unsound);
  EXPECT_NE(entries.at("invalid")->why.find("[WU2]"), std::string::npos);
  EXPECT_EQ(entries.at("mute")->entrance, Entrance::incomplete);
  EXPECT_EQ(entries.at("missed")->entrance, Entrance::unsound);
  Question question;
  question.despite = {"WU2", "Q1"};
  question.by = {Axis::energy, Axis::quality};
  const auto g = made(points, question);
  for (const auto& [label, entry] : by_label(g, points))
    EXPECT_EQ(entry->entrance, Entrance::placed) << label;
}

TEST(Frontier, OfPerplexityLessIsBetterAndItsTargetIsABound) {
  std::vector<Point> points{point("a", 300000, 5), point("b", 200000, 6), point("c", 310000, 7)};
  for (Point& p : points) {
    p.quality.metric = "Perplexity";
    p.quality.target = 6.5;
  }
  const auto f = made(points);
  const auto entries = by_label(f, points);
  EXPECT_EQ(entries.at("a")->placement.standing, Standing::best);
  EXPECT_EQ(entries.at("b")->placement.standing, Standing::best);
  EXPECT_EQ(entries.at("c")->entrance, Entrance::unsound);  // its target missed
  EXPECT_EQ(f.groups[0].better, Better::lower);
}

TEST(Frontier, DirectionsAreKnownOrAskedForNeverGuessed) {
  std::vector<Point> points{point("a", 300000, 5), point("b", 200000, 6)};
  for (Point& p : points) p.quality.metric = "vibe score";
  const auto unknown = frontier(points);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ExitCode::usage);
  EXPECT_NE(unknown.error().message.find("--better \"vibe score=higher\""), std::string::npos);

  Question asked;
  asked.directions["vibe score"] = Better::lower;
  EXPECT_EQ(made(points, asked).groups[0].better, Better::lower);
  points[1].quality.higher_is_better = true;
  EXPECT_EQ(made(points).groups[0].better, Better::higher);
  points[0].quality.higher_is_better = false;
  const auto torn = frontier(points);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, ExitCode::bad_input);

  // Where quality is no axis nobody needs to know.
  Question without;
  without.by = {Axis::energy, Axis::latency};
  EXPECT_FALSE(made(points, without).groups[0].better);

  EXPECT_EQ(rules::known_direction("ROUGE-L"), Better::higher);
  EXPECT_EQ(rules::known_direction("top 1"), Better::higher);
  EXPECT_EQ(rules::known_direction("WER"), Better::lower);
  EXPECT_FALSE(rules::known_direction("accuracy loss"));
  EXPECT_FALSE(read_direction("accuracy"));
  EXPECT_FALSE(read_direction("=higher"));
  EXPECT_EQ(read_direction("a=b=lower")->first, "a=b");
}

TEST(Frontier, LimitsKeepOutAndTheBestOfTheRestRemains) {
  std::vector<Point> points{point("good", 300000, 44.5, 0.1), point("cheap", 200000, 43, 0.1),
                            point("slow", 250000, 44.5, 0.4), point("edge", 100000, 44.5, 0.2)};
  Question question;
  question.quality_at_least = 44;
  question.latency_at_most = 0.2;
  const auto f = made(points, question);
  const auto entries = by_label(f, points);
  EXPECT_EQ(entries.at("good")->placement.standing, Standing::best);
  EXPECT_EQ(entries.at("cheap")->entrance, Entrance::outside);
  EXPECT_EQ(entries.at("slow")->entrance, Entrance::outside);
  EXPECT_EQ(entries.at("edge")->entrance, Entrance::at_limit);  // 0.2 s, give or take 1 %
  ASSERT_EQ(f.groups[0].least.size(), 1U);
  EXPECT_EQ(points[f.groups[0].entries[f.groups[0].least[0]].point].label, "good");

  points[1].quality.metric = "BLEU";
  const auto mixed = frontier(points, question);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ExitCode::usage);
}

TEST(Frontier, OfNothingIsNothing) {
  EXPECT_TRUE(made({}).groups.empty());
  const Frontier bare = made({Point()});
  ASSERT_EQ(bare.groups.size(), 1U);
  EXPECT_EQ(bare.groups[0].entries[0].entrance, Entrance::incomplete);  // on no axis at all
  EXPECT_TRUE(bare.groups[0].axes.empty());
}

RC_GTEST_PROP(Frontier, OrderOfPointsDoesNotMatter, ()) {
  std::vector<Point> points;
  const int count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    points.push_back(point("p" + std::to_string(i), *rc::gen::inRange(20, 40) * 1e4,
                           *rc::gen::inRange(40, 45), *rc::gen::inRange(1, 4)));
    Point& p = points.back();
    p.boundary.kind = *rc::gen::elementOf(std::vector<std::string>{"board", "rack", ""});
    p.scenario.batch = *rc::gen::elementOf(std::vector<run::Fact>{1, 8, {}});
    if (*rc::gen::inRange(0, 4) == 0) p.quality.value = {};
    if (*rc::gen::inRange(0, 4) == 0) p.meter.serial = "S2";
  }
  std::vector<Point> shuffled = points;
  for (std::size_t i = shuffled.size(); i > 1; --i)
    std::swap(shuffled[i - 1], shuffled[*rc::gen::inRange<std::size_t>(0, i)]);
  // What is said of each, in terms of labels.
  const auto told = [](const std::vector<Point>& of) {
    std::map<std::string, std::string> result;
    const auto made_of = frontier(of);
    RC_ASSERT(made_of.has_value());
    for (const Group& group : made_of->groups)
      for (const Entry& entry : group.entries) {
        std::string& text = result[of[entry.point].label];
        text = std::to_string(static_cast<int>(entry.entrance)) + " " +
               std::to_string(static_cast<int>(entry.placement.standing)) + " " + entry.why;
        std::vector<std::string> by;
        for (const std::size_t i : entry.placement.by)
          by.push_back(of[group.entries[i].point].label);
        std::ranges::sort(by);
        for (const std::string& one : by) text += " " + one;
        text += " | " + describe(group, of);
      }
    return result;
  };
  RC_ASSERT(told(points) == told(shuffled));
}

}  // namespace
}  // namespace joulediff::frontier
