// Meters that decide nothing, beside a host that does: what they saw is in ledgers of their own,
// and what they cannot have seen is unknown.
#include "attribute/beside.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>

#include "attribute/test_program.h"

namespace joulediff::attribute {
namespace {

using run::Source;

constexpr Nanoseconds kStep = 100 * kMillisecond;
constexpr Nanoseconds kTraceBegin = 20 * kSecond, kTraceEnd = 50 * kSecond, kEnd = 70 * kSecond;

// A host that works in bursts before and after its trace, and all of the time in it.
struct Host {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> busy;

  explicit Host(bool bursts = true) {
    std::mt19937 random(5);
    const auto until = [&](Nanoseconds from, Nanoseconds to) {
      while (from < to) {
        const auto length = static_cast<Nanoseconds>(300 + random() % 1500) * kMillisecond;
        busy.emplace_back(from, std::min(to, from + length));
        from += length + static_cast<Nanoseconds>(300 + random() % 1500) * kMillisecond;
      }
    };
    if (!bursts) {
      busy = {{-10 * kSecond, kEnd + 10 * kSecond}};
      return;
    }
    until(kSecond, kTraceBegin - kSecond);
    busy.emplace_back(kTraceBegin - kSecond / 2, kTraceEnd + kSecond / 2);
    until(kTraceEnd + kSecond, kEnd);
  }
  Nanoseconds worked(Nanoseconds from, Nanoseconds to) const {
    Nanoseconds sum = 0;
    for (const auto& [begin, end] : busy)
      sum += std::max<Nanoseconds>(0, std::min(to, end) - std::max(from, begin));
    return sum;
  }
  run::Series processor_time(Source source = Source::host_cpu) const {
    run::Series series{source, {}, {}, {}};
    for (Nanoseconds t = 0; t <= kEnd; t += 20 * kMillisecond) {
      series.time.push_back(t);
      series.value.push_back(worked(0, t));
    }
    return series;
  }
  // 100 W, and 100 W more at work, as means over `window` that come late.
  run::Series power(Source source, const char* channel, Nanoseconds period, Nanoseconds window,
                    Nanoseconds late, double per_watt) const {
    run::Series series{source, {}, {}, {}, channel};
    for (Nanoseconds t = window; t <= kEnd; t += period) {
      const double share = static_cast<double>(worked(t - window, t)) / static_cast<double>(window);
      series.time.push_back(t + late);
      series.value.push_back(std::llround(per_watt * (100 + 100 * share)));
    }
    return series;
  }
  run::Series wall(const char* channel = "wall") const {
    return power(Source::external_power, channel, kSecond / 2, 400 * kMillisecond,
                 900 * kMillisecond, 1e3);
  }
};

run::Run run_of(std::vector<run::Series> series, const std::string& boundary = "") {
  run::Run run;
  run::Block& block = run.blocks.emplace_back();
  block.host = "left";
  std::uint32_t index = 0;
  for (Nanoseconds t = kTraceBegin; t < kTraceEnd; t += kStep)
    block.steps.push_back({run::Pass::trace, index++, t, t + kStep, {}});
  block.series = std::move(series);
  if (!boundary.empty()) run.manifest.facts["meter_boundary"] = boundary;
  return run;
}

const Ledger* of(const Attribution& result, Boundary boundary, const std::string& channel) {
  for (const Ledger& ledger : result.beside)
    if (ledger.boundary == boundary && ledger.meter.channels == std::vector{channel})
      return &ledger;
  return nullptr;
}

void expect_only_a_total(const Ledger& ledger, double joules) {
  EXPECT_NEAR(ledger.total.joules.value, joules, 0.02 * joules);
  EXPECT_LE(ledger.total.low.value, joules);
  EXPECT_GE(ledger.total.high.value, joules);
  for (std::size_t i = 0; i + 1 < kLines; ++i)
    EXPECT_FALSE(ledger.lines[i]) << name(static_cast<Line>(i)) << " is unknown, never 0";
  EXPECT_EQ(ledger.line(Line::unattributed)->joules, ledger.total.joules);
  EXPECT_FALSE(ledger.meter.systematic) << "nobody said how good it is";
}

TEST(Beside, AnOutsideMeterIsAlignedAndHasALedger) {
  const Host host;
  const auto result = attribute(run_of({host.processor_time(), host.wall()}, "node"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->ledger.boundary, Boundary::host) << "it decides nothing";
  const Ledger* node = of(*result, Boundary::node, "wall");
  ASSERT_TRUE(node);
  expect_only_a_total(*node, 20);
  ASSERT_TRUE(node->meter.alignment);
  const meter::Estimate& delay = node->meter.alignment->delay;
  EXPECT_LE(delay.low, 1100 * kMillisecond);
  EXPECT_GE(delay.high, 1100 * kMillisecond);
  EXPECT_LT(delay.high - delay.low, 200 * kMillisecond);
}

// The trace begins where the load does: taken as they are stamped, its readings would be of 1.1 s
// of another power.
TEST(Beside, TheDelayIsTakenOff) {
  Host host(false);
  host.busy = {{5 * kSecond, 7 * kSecond}, {kTraceBegin, kTraceEnd}, {55 * kSecond, 58 * kSecond}};
  run::Run run = run_of({host.processor_time(), host.wall()}, "node");
  run.blocks[0].steps.resize(50);  // 5 s
  const auto result = attribute(run);
  ASSERT_TRUE(result && of(*result, Boundary::node, "wall"));
  EXPECT_NEAR(of(*result, Boundary::node, "wall")->total.joules.value, 20, 0.6);
}

TEST(Beside, AMeterThatCannotBeAlignedIsInNoLedger) {
  const Host host(false);
  const auto result = attribute(run_of({host.processor_time(), host.wall()}, "node"));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->beside.empty());
  const auto said =
      std::ranges::find(result->diagnostics, "attribute.meter_not_aligned", &Diagnostic::rule);
  ASSERT_NE(said, result->diagnostics.end());
  EXPECT_THAT(said->message, ::testing::HasSubstr("outside meter wall"));
  EXPECT_FALSE(said->remedy.empty());
}

TEST(Beside, AMeterOfWhichNobodySaidWhatItSeesIsInNoLedger) {
  const Host host;
  for (const char* boundary : {"", "the whole house"}) {
    const auto result = attribute(run_of({host.processor_time(), host.wall()}, boundary));
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->beside.empty());
    const auto said =
        std::ranges::find(result->diagnostics, "attribute.meter_boundary", &Diagnostic::rule);
    ASSERT_NE(said, result->diagnostics.end());
    EXPECT_THAT(said->remedy, ::testing::HasSubstr("--meter-boundary"));
  }
}

// One rail feeds others, as VDD_IN of a Jetson does: their sum would count twice.
TEST(Beside, RailsStandEachByItself) {
  const Host host;
  const auto rail = [&](const char* channel) {
    return host.power(Source::hwmon_power, channel, 50 * kMillisecond, 10 * kMillisecond, 0, 1e6);
  };
  run::Series counter{Source::hwmon_energy, {}, {}, {}, "ina3221 VDD_GPU"};
  for (Nanoseconds t = 0; t <= kEnd; t += 50 * kMillisecond) {
    counter.time.push_back(t);
    counter.value.push_back(7'000'000 + t / 1000 * 30);  // 30 W
  }
  const auto result =
      attribute(run_of({host.processor_time(), rail("ina3221 VDD_IN"), rail("ina3221 VDD_CPU"),
                        counter, rail("ina3221 VDD_GPU")}));
  ASSERT_TRUE(result);
  ASSERT_EQ(result->beside.size(), 3u);
  for (const char* channel : {"ina3221 VDD_IN", "ina3221 VDD_CPU"}) {
    ASSERT_TRUE(of(*result, Boundary::rail, channel));
    expect_only_a_total(*of(*result, Boundary::rail, channel), 20);
  }
  ASSERT_TRUE(of(*result, Boundary::rail, "ina3221 VDD_GPU"));
  expect_only_a_total(*of(*result, Boundary::rail, "ina3221 VDD_GPU"), 3);
}

TEST(Beside, AChipsDriverSaysWhatItSees) {
  const Host host;
  const auto chip = [&](const char* channel) {
    return host.power(Source::hwmon_power, channel, kSecond, kSecond, 0, 1e6);
  };
  const auto result = attribute(run_of({host.processor_time(), chip("power_meter power1"),
                                        chip("amdgpu PPT"), chip("ina226 power1")}));
  ASSERT_TRUE(result);
  EXPECT_TRUE(of(*result, Boundary::node, "power_meter power1"));
  EXPECT_TRUE(of(*result, Boundary::board, "amdgpu PPT"));
  EXPECT_TRUE(of(*result, Boundary::rail, "ina226 power1"));
}

TEST(Beside, ThePlatformsCounterIsTheNodes) {
  const Host host;
  run::Series psys{Source::rapl_psys, {}, {}, {}, "psys"};
  for (Nanoseconds t = 0; t <= kEnd; t += 20 * kMillisecond) {
    psys.time.push_back(t);
    psys.value.push_back(9'000'000 + t / 1000 * 80);  // 80 W
  }
  const auto result = attribute(run_of({host.processor_time(), psys}));
  ASSERT_TRUE(result && of(*result, Boundary::node, "psys"));
  expect_only_a_total(*of(*result, Boundary::node, "psys"), 8);
}

TEST(Beside, HostsOfOneRackReadItsMeterOnce) {
  const Host host;
  for (const auto& [boundary, joules] : {std::pair("node", 40.0), std::pair("rack", 20.0)}) {
    run::Run run = run_of({host.processor_time(), host.wall()}, boundary);
    run.blocks.push_back(run.blocks[0]);
    run.blocks[1].rank = 1;
    run.blocks[1].host = "right";
    const auto result = attribute(run);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->beside.size(), 1u);
    EXPECT_NEAR(result->beside[0].total.joules.value, joules, 0.02 * joules) << boundary;
  }
}

// A meter that goes silent for a while: of that time nothing is known.
TEST(Beside, WhatAMeterMissedIsNotInItsEnergy) {
  const Host host;
  run::Series wall = host.wall();
  for (std::size_t i = 0; i < wall.time.size();) {
    if (wall.time[i] > 25 * kSecond && wall.time[i] < 35 * kSecond) {
      wall.time.erase(wall.time.begin() + static_cast<std::ptrdiff_t>(i));
      wall.value.erase(wall.value.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  const auto result = attribute(run_of({host.processor_time(), wall}, "node"));
  ASSERT_TRUE(result && of(*result, Boundary::node, "wall"));
  EXPECT_NEAR(of(*result, Boundary::node, "wall")->total.joules.value, 20, 0.4);
}

}  // namespace
}  // namespace joulediff::attribute
