#include "report/mlperf_population.h"

#include <gmock/gmock.h>

#include "run/test_submissions.h"

namespace joulediff::report {
namespace {

using frontier::Standing;

struct Made {
  const char* benchmark;
  double watts;
  std::optional<double> f1;
  double rate = 1000;  // samples a second
};

MlperfPage page_of(const std::vector<Made>& all) {
  MlperfPage page;
  for (const Made& one : all) {
    MlperfEntry entry;
    run::Submission& s = entry.submission = run::good_inference();
    s.benchmark = one.benchmark;
    s.system = fmt::format("{} W", one.watts);
    s.inference->accuracy.reset();
    if (one.f1) s.inference->accuracy = fmt::format("{{\"f1\": {}}}", *one.f1);
    run::LoadGenLog& log = s.inference->testing.loadgen;
    log.samples_per_second = log.summary_rate = one.rate;
    log.samples_per_query = one.rate * 610;
    for (run::InferencePart* part : {&s.inference->ranging, &s.inference->testing})
      for (double& watts : part->power.total.watts) watts *= one.watts / 100;
    entry.judgement = rules::judge(s);
    page.entries.push_back(std::move(entry));
  }
  return page;
}

// The standing of each that is in a group, by its place on the page.
std::map<std::size_t, Standing> standings(const MlperfPage& page) {
  std::map<std::size_t, Standing> result;
  for (const frontier::Group& group : curves(page).frontier.groups)
    for (const frontier::Entry& entry : group.entries) {
      EXPECT_EQ(entry.entrance, frontier::Entrance::placed) << entry.why;
      result[entry.point] = entry.placement.standing;
    }
  return result;
}

using Standings = std::map<std::size_t, Standing>;

TEST(Population, BetterQualityForMoreEnergyIsATrade) {
  const MlperfPage page = page_of({{"bert-99", 100, 90.36}, {"bert-99.9", 125, 90.97}});
  EXPECT_EQ(standings(page), (Standings{{0, Standing::best}, {1, Standing::best}}));
  const FrontierPage curved = curves(page);
  ASSERT_EQ(curved.frontier.groups.size(), 1U) << "the level is no other work";
  EXPECT_EQ(frontier::describe(curved.frontier.groups[0], curved.points),
            "sample, bert, Offline, node-ac");
}

TEST(Population, MoreEnergyForLessQualityIsDominated) {
  EXPECT_EQ(standings(page_of({{"bert-99", 125, 90.2, 900}, {"bert-99", 100, 90.5}})),
            (Standings{{0, Standing::dominated}, {1, Standing::best}}));
}

// Two runs of one program differ by 1 %.
TEST(Population, WhatTheErrorsHoldIsUndecided) {
  EXPECT_EQ(standings(page_of({{"bert-99", 100.5, 90.5}, {"bert-99", 100, 90.5}})),
            (Standings{{0, Standing::undecided}, {1, Standing::undecided}}));
}

TEST(Population, AnUnknownQualityIsHeldAgainstItsOwnLevelAlone) {
  EXPECT_EQ(standings(page_of({{"bert-99", 100, {}}, {"bert-99.9", 125, {}}})), Standings{});
  EXPECT_EQ(standings(page_of({{"bert-99", 100, {}}, {"bert-99", 125, {}, 900}})),
            (Standings{{0, Standing::best}, {1, Standing::dominated}}));
}

// What misses its target, or was changed since, has a check that says so: here it shows its price.
TEST(Population, TargetsAndHashesKeepNothingApart) {
  MlperfPage page = page_of({{"bert-99", 80, 85}, {"bert-99", 100, 90.5}});
  page.entries[1].judgement.point.disclosure.hashes_match = false;
  EXPECT_EQ(standings(page), (Standings{{0, Standing::best}, {1, Standing::best}}));
}

TEST(Population, WhatHasNoEnergyIsInNoCurve) {
  MlperfPage page = page_of({{"bert-99", 80, 90.5}, {"bert-99", 100, 90.5}});
  page.entries[0].judgement.point.energy.joules.reset();
  page.entries[0].judgement.score.trapezoid.reset();
  EXPECT_EQ(standings(page), Standings{});
}

}  // namespace
}  // namespace joulediff::report
