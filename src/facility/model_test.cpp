#include "facility/model.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "facility/queue.h"
#include "facility/test_plans.h"

namespace joulediff::facility {
namespace {

Plan plan_of(const std::string& text, const TestFiles& files = {}) {
  auto plan = read_plan(text, "plan.toml", files.surroundings());
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : Plan();
}

Year year_of(const Plan& plan, std::size_t alternative = 0) {
  return year_of(plan, plan.alternatives[alternative], plan.base_values());
}

constexpr double kSeconds = 8760 * 3600.0;

// 1 unit/s, and a replica keeps the SLO up to 0.5 x 4 = 2 a second: one for the demand and one
// spare. Busy is 1/4 = 0.25 of a replica. In watts, that is joules per unit at a unit a second:
//   work 100; idle (1 - 0.25) x 50 = 37.5; spares 1 x 50 = 50; rest 2 x 20 = 40; sum 227.5
//   supply 227.5 x (1/0.8 - 1) = 56.875; nodes 284.375
//   cooling 284.375 x 0.5 = 142.1875; site 426.5625
TEST(Model, EnergyByHand) {
  const Year year = year_of(plan_of(kPlan));
  EXPECT_DOUBLE_EQ(year.arrived, 31536000);
  EXPECT_DOUBLE_EQ(year.served, 31536000);
  EXPECT_EQ(year.installed, 2);
  EXPECT_NEAR(year.utilisation, 0.125, 1e-12);  // 0.25 of 2
  EXPECT_NEAR(year[Line::work] / kSeconds, 100, 1e-9);
  EXPECT_NEAR(year[Line::idle] / kSeconds, 37.5, 1e-9);
  EXPECT_NEAR(year[Line::spares] / kSeconds, 50, 1e-9);
  EXPECT_NEAR(year[Line::rest] / kSeconds, 40, 1e-9);
  EXPECT_NEAR(year[Line::supply] / kSeconds, 56.875, 1e-9);
  EXPECT_EQ(year[Line::parked], 0);
  EXPECT_NEAR(year[Line::cooling] / kSeconds, 142.1875, 1e-9);
  EXPECT_NEAR(year.site / kSeconds, 426.5625, 1e-9);
  // 1.5 x (37.5 + 50 + 40 x (0.75 + 1) / 2) / 0.8 = 1.5 x 122.5 / 0.8
  EXPECT_NEAR(year.without_work / kSeconds, 229.6875, 1e-9);
}

// J per unit = (U P_load + (1 - U) P_idle) / (U T) with U = 0.25, P_load = 400, P_idle = 50, T = 4:
// (100 + 37.5) / 1 = 137.5, which is work and idle above.
TEST(Model, AgreesWithTheFormulaOfUtilisation) {
  const Year year = year_of(plan_of(kPlan));
  EXPECT_NEAR((year[Line::work] + year[Line::idle]) / year.served,
              (0.25 * 400 + 0.75 * 50) / (0.25 * 4), 1e-9);
}

// Peak: 2 x (500 + 20) / 0.8 x 1.5 = 1950 W. Without peak_watts the mean at load, 400 W, stands in:
// 2 x 420 / 0.8 x 1.5 = 1575 W.
TEST(Model, PeakByHand) {
  EXPECT_NEAR(year_of(plan_of(kPlan)).peak, 1950, 1e-9);
  EXPECT_NEAR(year_of(plan_of(replaced(kPlan, "peak_watts = 500\n", ""))).peak, 1575, 1e-9);
  EXPECT_NEAR(year_of(plan_of(kPlan)).highest_hour, 426.5625, 1e-9);
}

// 0.4265625 kW x 8760 h = 3736.6875 kWh. x 0.2 = 747.3375; 12 months x 0.4265625 kW x 10 = 51.1875;
// 2 x 1000. Carbon: 3736.6875 x 400 = 1494675 g; embodied 2 x 100 kg x 0.5 / 4 years = 25000 g.
TEST(Model, CostAndCarbonByHand) {
  const Year year = year_of(plan_of(kPlan));
  EXPECT_NEAR(year.energy_cost, 747.3375, 1e-6);
  EXPECT_NEAR(year.demand_cost, 51.1875, 1e-9);
  EXPECT_NEAR(year.replica_cost, 2000, 1e-9);
  EXPECT_NEAR(year.cost, 2798.525, 1e-6);
  EXPECT_NEAR(year.operation, 1494675, 1e-3);
  EXPECT_NEAR(year.embodied, 25000, 1e-9);
  EXPECT_NEAR(year.carbon, 1519675, 1e-3);
}

// A node's energy holds its rest and its supply, which are then not known apart.
TEST(Model, LinesThatTheMeterSawTogether) {
  std::string text = replaced(kPlan, "rest_watts = 20\nsupply_efficiency = 0.8\n", "");
  const Year year = year_of(plan_of(replaced(text, "\"board\"", "\"node\"")));
  EXPECT_TRUE(std::isnan(year[Line::rest]));
  EXPECT_TRUE(std::isnan(year[Line::supply]));
  EXPECT_NEAR(year.site / kSeconds, (100 + 37.5 + 50) * 1.5, 1e-9);
}

TEST(Model, UnknownIsNoZero) {
  const Year year = year_of(
      plan_of(kHead + kService + kSlo + kSite + replaced(kA, "cost_per_year = 1000\n", "")));
  EXPECT_TRUE(std::isnan(year.cost));
  EXPECT_TRUE(std::isnan(year.operation));
  EXPECT_TRUE(std::isnan(year.carbon));
  EXPECT_FALSE(std::isnan(year.embodied));
}

// 3 tokens a request: 300 J and 4/3 a second; a replica keeps the SLO up to 2/3 a second, so 2 and
// a spare are there.
TEST(Model, WorkInAnotherUnit) {
  const Plan plan =
      plan_of(replaced(kPlan, "joules_per_unit", "work_per_unit = 3\njoules_per_unit"));
  EXPECT_DOUBLE_EQ(device_joules(plan.alternatives[0], plan.base_values()), 300);
  const Year year = year_of(plan);
  EXPECT_EQ(year.installed, 3);
  EXPECT_NEAR(year[Line::work] / kSeconds, 300, 1e-9);
  EXPECT_NEAR(year[Line::idle] / kSeconds, (2 - 0.75) * 50, 1e-9);
}

// The busiest minutes are three times the hour's mean: 3 a second need 2 replicas.
TEST(Model, PeakFactorSizes) {
  EXPECT_EQ(year_of(plan_of(replaced(kPlan, "peak_factor = 1", "peak_factor = 3"))).installed, 3);
}

// No wait for half of the units, one unit at a time: a replica of 4 a second waits with the
// probability of its utilisation, 1/4 (queue_test), so one is enough. At 3 a second the one waits
// in 3/4; with two, a = 3/4: B(1) = 3/7, B(2) = (9/28) / (2 + 9/28) = 9/65, C = (18/65) / (2 -
// (3/4)(56/65)) = (18/65) / (88/65) = 9/44, which is less than half.
TEST(Model, QueueSizes) {
  std::string text = replaced(kPlan, "share = 0.99\nutilisation = 0.5", "share = 0.5\nwait = 0");
  text = replaced(text, "peak_watts", "concurrency = 1\npeak_watts");
  EXPECT_EQ(year_of(plan_of(text)).installed, 2);
  EXPECT_EQ(year_of(plan_of(replaced(text, "peak_factor = 1", "peak_factor = 3"))).installed, 3);
}

// A single replica and no spare, by day twice what by night: 16 hours at 1 and 8 at 2 a second are
// 24 + 8 = 32 units a day in 24 slots. At 1.5 x its limit of 2 units are late, above 4 unserved.
TEST(Model, TooFewReplicas) {
  std::string text = replaced(kPlan, "redundancy = 1", "redundancy = 0");
  text = replaced(text, "peak_watts", "replicas = 1\npeak_watts");
  text =
      replaced(text, "per_year = 31536000",
               "per_year = 94608000\nprofile = { by_hour = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, "
               "2, 2, 2, 5, 5, 5, 5, 5, 5, 5, 5] }");  // 3 a second on average, as it happens
  const Year year = year_of(plan_of(text));
  EXPECT_EQ(year.installed, 1);
  // 8 of 24 hours with 5 a second, of which 4 are served: (16 x 2 + 8 x 4) / (16 x 2 + 8 x 5).
  EXPECT_NEAR(year.served / year.arrived, 64.0 / 72, 1e-12);
  // In time are those of the 16 hours at its limit of 2, and of these 99 %.
  EXPECT_NEAR(year.in_time / year.arrived, 32.0 / 72 * 0.99, 1e-12);
}

// Half the hours 4 a second (2 replicas), half 1 (1 replica), no spare: in the quiet hours one is
// parked at 10 W. Work (4 + 1) / 2 x 100; idle (2 - 1) x 50 and (1 - 0.25) x 50; rest 1.5 x 20.
TEST(Model, HourlyScaling) {
  std::string text = replaced(kPlan, "redundancy = 1", "redundancy = 0");
  text = replaced(text, "peak_watts", "scaling = \"hourly\"\nparked_watts = 10\npeak_watts");
  text =
      replaced(text, "per_year = 31536000",
               "per_year = 78840000\nprofile = { by_hour = [4, 1, 4, 1, 4, 1, 4, 1, 4, 1, 4, 1, 4, "
               "1, 4, 1, 4, 1, 4, 1, 4, 1, 4, 1] }");
  const Year year = year_of(plan_of(text));
  EXPECT_EQ(year.installed, 2);
  EXPECT_NEAR(year[Line::work] / kSeconds, 250, 1e-9);
  EXPECT_NEAR(year[Line::idle] / kSeconds, (50 + 37.5) / 2, 1e-9);
  EXPECT_NEAR(year[Line::rest] / kSeconds, 30, 1e-9);
  EXPECT_NEAR(year[Line::parked] / kSeconds, 5, 1e-9);
  EXPECT_NEAR(year.utilisation, 1.25 / 3, 1e-12);  // busy 1 and 0.25 of running 2 and 1
}

// The same by queueing, no wait for half of the units: 3 a second need two replicas and 1 a second
// one (QueueSizes). Idle (2 - 0.75) x 50 and (1 - 0.25) x 50.
TEST(Model, HourlyScalingByQueueing) {
  std::string text = replaced(kPlan, "redundancy = 1", "redundancy = 0");
  text = replaced(text, "share = 0.99\nutilisation = 0.5", "share = 0.5\nwait = 0");
  text = replaced(text, "peak_watts",
                  "concurrency = 1\nscaling = \"hourly\"\nparked_watts = 10\npeak_watts");
  text =
      replaced(text, "per_year = 31536000",
               "per_year = 63072000\nprofile = { by_hour = [3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, "
               "1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1] }");
  const Year year = year_of(plan_of(text));
  EXPECT_EQ(year.installed, 2);
  EXPECT_NEAR(year[Line::work] / kSeconds, 200, 1e-9);
  EXPECT_NEAR(year[Line::idle] / kSeconds, (62.5 + 37.5) / 2, 1e-9);
  EXPECT_NEAR(year[Line::rest] / kSeconds, 30, 1e-9);
  EXPECT_NEAR(year[Line::parked] / kSeconds, 5, 1e-9);
  EXPECT_EQ(year.served, year.arrived);
}

// Twenty-four demands, half a unit a second apart: each hour's replicas are those that the queue
// asks for at its demand alone.
TEST(Model, EachHourIsAQueueOfItsOwn) {
  std::string text = replaced(kPlan, "redundancy = 1", "redundancy = 0");
  text = replaced(text, "share = 0.99\nutilisation = 0.5", "share = 0.99\nwait = 0.2");
  text = replaced(text, "peak_watts",
                  "concurrency = 2\nscaling = \"hourly\"\nparked_watts = 0\npeak_watts");
  std::string weights;
  double idle = 0, running = 0;
  const Queue queue{2, 0.2, 0.99};
  for (int h = 1; h <= 24; ++h) {
    weights += fmt::format("{}{}", h > 1 ? ", " : "", h);
    const double demand = 0.5 * h;
    const auto replicas = static_cast<double>(groups_needed(queue, demand, 2));
    idle += (replicas - demand / 4) * 50 / 24;
    running += replicas / 24;
  }
  text = replaced(text, "per_year = 31536000",
                  "per_year = 197100000\nprofile = { by_hour = [" + weights + "] }");
  const Year year = year_of(plan_of(text));
  EXPECT_NEAR(year[Line::idle] / kSeconds, idle, 1e-6);
  EXPECT_NEAR(year[Line::rest] / kSeconds, running * 20, 1e-6);
}

// A site that draws 1 kW in each hour in which there is demand: 1000 J a unit, a unit a second, and
// nothing else draws anything.
std::string one_kilowatt(const std::string& zone, int year, int seconds_of_demand,
                         const std::string& profile, const std::string& tariff,
                         const std::string& intensity) {
  return fmt::format(R"(schema = "joulediff.plan/1"
zone = "{}"
year = {}
[service]
unit = "request"
per_year = {}
peak_factor = 1
{}
[slo]
share = 0.99
utilisation = 1
[site]
pue = 1
redundancy = 0
[[alternatives]]
name = "A"
boundary = "node"
joules_per_unit = 1000
throughput = 1
idle_watts = 0
[tariff]
currency = "EUR"
{}
[carbon]
intensity = {}
zone = "DE"
kind = "average"
basis = "location"
)",
                     zone, year, seconds_of_demand, profile, tariff, intensity);
}

// The price is 1 in the period and 0 outside, so the cost counts the period's hours.
double hours_in(const std::string& period, const std::string& zone = "Europe/Berlin",
                int year = 2024) {
  const std::string tariff = "energy = { value = 0, periods = [ { " + period +
                             (period.empty() ? "" : ", ") + "value = 1 } ] }";
  const int hours = year % 4 == 0 ? 8784 : 8760;
  const Plan plan = plan_of(one_kilowatt(zone, year, hours * 3600, "", tariff, "0"));
  return year_of(plan).energy_cost;
}

TEST(Tariff, LeapYear) {
  EXPECT_NEAR(hours_in(""), 8784, 1e-6);
  EXPECT_NEAR(hours_in("", "Europe/Berlin", 2023), 8760, 1e-6);
  EXPECT_NEAR(hours_in("months = [2]"), 29 * 24, 1e-6);
  EXPECT_NEAR(hours_in("months = [2]", "Europe/Berlin", 2023), 28 * 24, 1e-6);
}

// March 2024 has 31 days, one of them without the hour from 2 to 3; October one that has it twice.
TEST(Tariff, ChangesOfTheClock) {
  EXPECT_NEAR(hours_in("months = [3], hours = [2, 3]"), 30, 1e-9);
  EXPECT_NEAR(hours_in("months = [10], hours = [2, 3]"), 32, 1e-9);
  EXPECT_NEAR(hours_in("hours = [2, 3]"), 366, 1e-9);
  // Five Sundays in March (3, 10, 17, 24, 31), the last of 23 hours; four in October, one of 25.
  EXPECT_NEAR(hours_in("months = [3], days = [\"sun\"]"), 5 * 24 - 1, 1e-9);
  EXPECT_NEAR(hours_in("months = [10], days = [\"sun\"]"), 4 * 24 + 1, 1e-9);
  EXPECT_NEAR(hours_in("months = [3], hours = [2, 3]", "UTC"), 31, 1e-9);
}

// From 22 to 6: 8 hours a night, of which March lacks one and October has one more.
TEST(Tariff, NightsGoPastMidnight) {
  EXPECT_NEAR(hours_in("months = [3], hours = [22, 6]"), 31 * 8 - 1, 1e-9);
  EXPECT_NEAR(hours_in("months = [10], hours = [22, 6]"), 31 * 8 + 1, 1e-9);
  EXPECT_NEAR(hours_in("months = [4], hours = [22, 6]"), 30 * 8, 1e-9);
}

TEST(Tariff, TheFirstPeriodThatHoldsCounts) {
  const std::string tariff =
      "energy = { value = 1, periods = [ { months = [1], hours = [8, 20], value = 3 }, "
      "{ months = [1], value = 2 } ] }";
  // January: 31 x 12 hours at 3 and 31 x 12 at 2; the other 8784 - 744 hours at 1.
  const Plan plan = plan_of(one_kilowatt("Europe/Berlin", 2024, 8784 * 3600, "", tariff, "0"));
  EXPECT_NEAR(year_of(plan).energy_cost, 372 * 3 + 372 * 2 + 8040, 1e-6);
}

// A month's highest hour: June has twice the weight of the others, so its hours are twice as high
// (capacity follows: two replicas). 11 months at p and June at 2p; the charge is 13 p.
TEST(Tariff, DemandChargeIsOfEachMonthsHighestHour) {
  const Plan plan =
      plan_of(one_kilowatt("Europe/Berlin", 2024, 8784 * 3600,
                           "profile = { by_month = [1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1] }",
                           "energy = 0\ndemand_charge = 1", "0"));
  const double p = 8784.0 / (8784 + 30 * 24);  // kW
  EXPECT_NEAR(year_of(plan).demand_cost, 13 * p, 1e-9);
}

// Demand only in the local hour from 2 to 3, of which 2024 has 366 in Berlin; the grid emits 1000
// g/kWh from 00:00 to 01:00 UTC and nothing else. In summer 2:00 is 0:00 UTC: from 1 April to 26
// October 209 times, and once more for the first of the two on 27 October. In winter it is 1:00
// UTC.
TEST(Carbon, MeetsTheClockOnlyInSummer) {
  TestFiles files;
  std::string& csv = files.texts["grid.csv"];
  csv = "time,value\n";
  for (const Hour& hour : hours_of_year(Zone::named("Europe/Berlin").value(), 2024)) {
    const Civil utc = Zone::utc().local(hour.begin);
    csv += fmt::format("{:04}-{:02}-{:02}T{:02}:00:00Z,{}\n", utc.year, utc.month, utc.day,
                       utc.hour, utc.hour == 0 ? 1000 : 0);
  }
  const std::string profile =
      "profile = { by_hour = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
      "0] }";
  const std::string file =
      "{ file = \"grid.csv\", time_column = \"time\", value_column = \"value\", unit = \"g/kWh\" }";
  const Plan plan =
      plan_of(one_kilowatt("Europe/Berlin", 2024, 366 * 3600, profile, "energy = 0", file), files);
  EXPECT_NEAR(year_of(plan).operation, 210 * 1000, 1e-6);
  // All year round each day has its hour from 00:00 UTC: 366 of them.
  const Plan even =
      plan_of(one_kilowatt("Europe/Berlin", 2024, 8784 * 3600, "", "energy = 0", file), files);
  EXPECT_NEAR(year_of(even).operation, 366 * 1000, 1e-6);
}

// Overheads of 0.2 in half of the months and 0.4 in the others, scaled by 1.5: PUE 1.3 and 1.6.
TEST(Pue, ASeasonsOverheadScales) {
  std::string text = replaced(kPlan, "pue = 1.5",
                              "pue = { by_month = [1.2, 1.2, 1.2, 1.4, 1.4, 1.4, 1.4, 1.4, 1.4, "
                              "1.2, 1.2, 1.2], scale = 1.5 }");
  const Year year = year_of(plan_of(text));
  // 2023: January to March and October to December are 90 + 92 = 182 days, the others 183.
  EXPECT_NEAR(year.site / kSeconds, 284.375 * (1.3 * 182 + 1.6 * 183) / 365, 1e-9);
  EXPECT_NEAR(year.peak, 2 * 520 / 0.8 * 1.6, 1e-9);  // in the worst hour
}

// The lines sum to the site's energy whatever the plan, and more demand never takes less where load
// draws more than waiting.
RC_GTEST_PROP(Model, LinesSumToTheSite, ()) {
  const auto number = [](int least, int most) {
    return static_cast<double>(*rc::gen::inRange(least, most));
  };
  static const Plan plan = plan_of(kPlan);
  std::vector<double> values = plan.base_values();
  const Alternative& one = plan.alternatives[0];
  values[one.joules_per_unit.index()] = number(1, 10000);
  values[one.throughput.index()] = number(1, 100) / 10;
  values[one.idle_watts.index()] = number(0, 1000);
  values[one.rest_watts.index()] = number(0, 1000);
  values[one.supply.index()] = number(50, 101) / 100;
  values[plan.pue.level.index()] = number(100, 200) / 100;
  const Year year = joulediff::facility::year_of(plan, one, values);
  double sum = 0;
  for (const double line : year.lines) sum += line;
  RC_ASSERT(std::fabs(sum - year.site) <= 1e-9 * year.site);
  RC_ASSERT(year.without_work <= year.site * (1 + 1e-12));
  RC_PRE(values[one.joules_per_unit.index()] * values[one.throughput.index()] >=
         values[one.idle_watts.index()]);
  RC_ASSERT(joulediff::facility::year_of(plan, one, values, 1.25).site >= year.site * (1 - 1e-12));
}

}  // namespace
}  // namespace joulediff::facility
