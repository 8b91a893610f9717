#include "facility/plan.h"

#include <gmock/gmock.h>

#include "facility/document.h"
#include "facility/test_plans.h"

namespace joulediff::facility {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string complaint(const std::string& text, const TestFiles& files = {}) {
  const auto plan = read_plan(text, "plan.toml", files.surroundings());
  if (plan) return "fine";
  EXPECT_EQ(plan.error().code, ExitCode::bad_input);
  EXPECT_EQ(plan.error().message.find('\n'), std::string::npos);
  return plan.error().message;
}

TEST(Document, SyntaxErrorsHaveALine) {
  EXPECT_THAT(complaint("a = 1\nb = = 2\n"), StartsWith("plan.toml:2: "));
}

TEST(Plan, ReadsTheExampleOfTheTests) {
  const Plan plan = read_plan(kPlan, "plan.toml", TestFiles().surroundings()).value();
  EXPECT_EQ(plan.hours.size(), 8760u);
  EXPECT_EQ(plan.alternatives[0].boundary, Boundary::board);
  EXPECT_EQ(plan.inputs[plan.pue.level.index()].origin, "plan.toml:12");
}

TEST(Plan, UnknownKeysNameTheNearest) {
  EXPECT_EQ(complaint(replaced(kPlan, "pue = 1.5", "pue = 1.5\nredundency = 2")),
            "plan.toml:13: site.redundency: there is no such key; did you mean redundancy?");
  EXPECT_THAT(complaint(kPlan + "[teriff]\n"), HasSubstr("did you mean tariff?"));
  EXPECT_THAT(
      complaint(replaced(kPlan, "idle_watts = 50", "idle_watts = 50\nidle_wats = 5")),
      HasSubstr("alternatives[1].idle_wats: there is no such key; did you mean idle_watts?"));
  EXPECT_THAT(complaint(replaced(kPlan, "pue = 1.5", "pue = { low = 1, base = 1, hihg = 2 }")),
              HasSubstr("high is missing"));
  EXPECT_THAT(
      complaint(replaced(kPlan, "pue = 1.5", "pue = { low = 1, base = 1, high = 2, hi = 3 }")),
      HasSubstr("site.pue.hi: there is no such key"));
}

TEST(Plan, WhatIsMissingOrWrongIsSaidWithItsLine) {
  struct Case {
    std::string text;
    std::string says;
  };
  const std::vector<Case> cases{
      {"", "plan.toml:1: schema is missing"},
      {replaced(kPlan, "plan/1", "plan/2"),
       "plan.toml:1: schema: joulediff.plan/2 is not read here"},
      {replaced(kPlan, "\"UTC\"", "\"Utopia\""), "plan.toml:2: zone: there is no time zone Utopia"},
      {replaced(kPlan, "2023", "23"), "plan.toml:3: year: give a number from 1971 to 2199"},
      {replaced(kPlan, "2023", "2023.5"), "plan.toml:3: year: give a whole number"},
      {replaced(kPlan, "2023", "2023-01-01"), "plan.toml:3: year: give a number"},
      {replaced(kPlan, "per_year = 31536000\n", ""), "plan.toml:4: service: give per_year"},
      {replaced(kPlan, "per_year = 31536000", "per_year = -1"), "plan.toml:6: service.per_year"},
      {replaced(kPlan, "peak_factor = 1\n", ""), "peak_factor is missing"},
      {replaced(kPlan, "utilisation = 0.5", "utilisation = 1.5"),
       "slo.utilisation: give a number from 0.001 to 1"},
      {replaced(kPlan, "utilisation = 0.5", "utilisation = { low = 0.6, base = 0.5, high = 0.7 }"),
       "slo.utilisation: low, base and high are not in this order"},
      {replaced(kPlan, "utilisation = 0.5", "wait = 1"), "concurrency is missing"},
      {replaced(kPlan, "pue = 1.5", "pue = 0.9"), "site.pue: give a number from 1 to 10"},
      {replaced(kPlan, "pue = 1.5\n", ""), "pue is missing"},
      {replaced(kPlan, "pue = 1.5", "pue = { by_hour = [1.2, 1.3] }"),
       "site.pue.by_hour: give 24 numbers; there are 2"},
      {replaced(kPlan, "pue = 1.5", "pue = {}"), "site.pue: give one of"},
      {replaced(kPlan, "redundancy = 1", "redundancy = 0.5"), "give a whole number"},
      {replaced(kPlan, "energy = 0.2", "energy = \"cheap\""), "tariff.energy: give a number"},
      {replaced(kPlan, "energy = 0.2",
                "energy = { value = 1, periods = [ { hours = [8], value = 2 } ] }"),
       "tariff.energy.periods[1].hours: give the hour from which"},
      {replaced(kPlan, "energy = 0.2",
                "energy = { value = 1, periods = [ { days = [\"monday\"], value = 2 } ] }"),
       "days are mon"},
      {replaced(kPlan, "kind = \"average\"", "kind = \"mean\""),
       "carbon.kind: mean is none of: average, marginal"},
      {replaced(kPlan, "basis = \"location\"\n", ""), "basis is missing"},
      {replaced(kPlan, "boundary = \"board\"\n", ""), "boundary is missing"},
      {replaced(kPlan, "rest_watts = 20\n", ""), "rest_watts is missing"},
      {replaced(kPlan, "supply_efficiency = 0.8\n", ""), "supply_efficiency is missing"},
      {replaced(kPlan, "\"board\"", "\"node\""), "energies of the node have it in them"},
      {replaced(kPlan, "idle_watts = 50\n", ""), "alternatives[1]: idle_watts is missing"},
      {replaced(kPlan, "share = 0.5\n", ""), "share is missing"},
      {replaced(kPlan, "throughput = 4", "throughput = 4\nscaling = \"hourly\""),
       "parked_watts is missing"},
      {replaced(kPlan, "throughput = 4",
                "throughput = 4\nscaling = \"hourly\"\nparked_watts = 1\nreplicas = 9"),
       "hourly scaling goes by the demand of each hour; leave replicas out"},
      {kPlan + kA, "alternatives[2].name: another alternative has this name"},
      {kHead + kService + kSlo + kSite, "there is no alternative"},
      {"rank_by = \"cost\"\n" + kHead + kService + kSlo + kSite +
           replaced(kA, "cost_per_year = 1000\n", ""),
       "there is no [tariff] to rank by"},
      {replaced(kPlan, "intensity = 400", "intensity = { file = \"no.csv\" }"),
       "carbon.intensity.file: cannot read no.csv"},
  };
  for (const Case& one : cases) EXPECT_THAT(complaint(one.text), HasSubstr(one.says)) << one.text;
}

// F1: energy of the facility has the PUE in it.
TEST(Plan, PueNeverCountsTwice) {
  std::string text = replaced(kPlan, "\"board\"", "\"facility\"");
  text = replaced(text, "rest_watts = 20\nsupply_efficiency = 0.8\n", "");
  EXPECT_THAT(complaint(text), HasSubstr("site.pue: an alternative's energy is of the facility"));
  EXPECT_EQ(complaint(replaced(text, "pue = 1.5\n", "")), "fine");
}

// F5: a file of marginal intensities is no file of averages.
TEST(Plan, KindsOfCarbonDoNotMix) {
  TestFiles files;
  std::string& csv = files.texts["moer.csv"];
  csv = "timestamp,MOER\n";
  for (const Hour& hour : hours_of_year(Zone::utc(), 2023)) {
    const Civil c = hour.local;
    csv += std::to_string(c.year) + (c.month < 10 ? "-0" : "-") + std::to_string(c.month) +
           (c.day < 10 ? "-0" : "-") + std::to_string(c.day) + (c.hour < 10 ? "T0" : "T") +
           std::to_string(c.hour) + ":00:00Z,900\n";
  }
  const std::string text =
      replaced(kPlan, "intensity = 400", "intensity = { file = \"moer.csv\" }");
  EXPECT_THAT(complaint(text, files), HasSubstr("carbon.kind: the file has marginal intensities"));
  EXPECT_EQ(complaint(replaced(text, "\"average\"", "\"marginal\""), files), "fine");
}

TEST(Plan, TakesMeasuredInputsFromARun) {
  TestFiles files;
  Measured& run = files.runs["a.jd"];
  run.work_unit = "request";
  run.joules_per_unit = {95, 100, 105};
  run.energy_ranged = true;
  run.throughput = {4, 4, 4};
  const std::string text = replaced(
      kPlan, "boundary = \"board\"\njoules_per_unit = 100\nthroughput = 4", "from = \"a.jd\"");
  const Plan plan = read_plan(text, "plan.toml", files.surroundings()).value();
  const Input& joules = plan.inputs[plan.alternatives[0].joules_per_unit.index()];
  EXPECT_EQ(joules.range.high, 105);
  EXPECT_EQ(joules.standing, Standing::measured);
  EXPECT_EQ(joules.origin, "a.jd");
  EXPECT_FALSE(plan.inputs[plan.alternatives[0].throughput.index()].ranged);
  // The run knows no idle power, so the plan must.
  EXPECT_THAT(complaint(replaced(text, "idle_watts = 50\n", ""), files),
              HasSubstr("idle_watts is missing"));
  run.work_unit = "token";
  EXPECT_THAT(complaint(text, files), HasSubstr("it counts tokens and the plan requests"));
  EXPECT_THAT(complaint(replaced(text, "a.jd", "b.jd"), files),
              AllOf(StartsWith("plan.toml:"), HasSubstr("cannot read b.jd")));
}

}  // namespace
}  // namespace joulediff::facility
