#include "meter/meter.h"

#include <cmath>

#include <gmock/gmock.h>

#include "meter/spread.h"
#include "meter/window.h"

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kS = 1'000'000'000;

const Meter kCounter{};
const Meter kHost{"host model", Boundary::host, 1, Standing::modelled, run::Source::host_cpu};

// A counter of `watts` that ticks every 100 ms for `seconds`, seen within 2 ms.
run::Series counter(double watts, double seconds) {
  run::Series series{run::Source::nvml_energy, {}, {}, {}};
  for (int i = 0; i <= static_cast<int>(10 * seconds); ++i) {
    series.time.push_back(i * 100 * kMs);
    series.value.push_back(1'000'000 + static_cast<std::int64_t>(100 * watts * i));
    series.uncertainty.push_back(2 * kMs);
  }
  return series;
}

run::Block block_of(run::Series series) {
  run::Block block;
  block.end = series.time.back();
  block.series.push_back(std::move(series));
  return block;
}

TEST(Read, IsCutAtTheTicksInside) {
  const run::Block block = block_of(counter(400, 10));
  const auto reading = read(kCounter, block, 1030 * kMs, 1990 * kMs);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->begin, 1100 * kMs);
  EXPECT_EQ(reading->end, 1900 * kMs);
  EXPECT_DOUBLE_EQ(reading->energy.joules.value, 320);
  EXPECT_NEAR(reading->power().value, 400, 1e-9);
  // 400 W x 2 ms x sqrt 2, of which 95 % lie within 1.1 times, and one millijoule.
  EXPECT_NEAR(reading->energy.half_width().value, 1.1 * 400 * 0.002 * std::sqrt(2.0) + 1e-3, 1e-9);
}

TEST(Read, AWindowTooShortForTheMeterIsRefused) {
  const run::Block block = block_of(counter(400, 10));
  EXPECT_FALSE(read(kCounter, block, 1030 * kMs, 1250 * kMs)) << "two ticks";
  EXPECT_TRUE(read(kCounter, block, 1030 * kMs, 1350 * kMs)) << "three";
  EXPECT_FALSE(read(kCounter, block, 20 * kS, 30 * kS)) << "outside the series";
  EXPECT_FALSE(read(kCounter, block, 2 * kS, 1 * kS)) << "backwards";
  EXPECT_FALSE(read(kCounter, run::Block{}, 0, kS)) << "no series";
}

TEST(Read, ARepeatedValueIsNoTick) {  // a sampler that writes every read, 10 ms apart
  run::Series series{run::Source::nvml_energy, {}, {}, {}};
  for (int i = 0; i < 200; ++i) {
    series.time.push_back(i * 10 * kMs);
    series.value.push_back(1000 + i / 10 * 10'000);
  }
  const auto reading = read(kCounter, block_of(series), 250 * kMs, 1250 * kMs);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->begin, 300 * kMs) << "the value seen at 250 ms ticked before";
  EXPECT_EQ(reading->end, 1200 * kMs);
  EXPECT_DOUBLE_EQ(reading->energy.joules.value, 90);
}

// The fault reports that trackers of energy have collected.

TEST(Faults, FrozenCounterIsUnknownNotZero) {
  run::Series series = counter(400, 10);
  std::ranges::fill(series.value, 5'000'000);
  const run::Block block = block_of(series);
  EXPECT_FALSE(read(kCounter, block, 0, 10 * kS));
  run::Run run;
  run.blocks.push_back(block);
  const auto meter = choose_meter(run);
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, ExitCode::environment);
}

TEST(Faults, CounterFrozenHalfwayIsReadUpToThere) {
  run::Series series = counter(400, 10);
  std::fill(series.value.begin() + 51, series.value.end(), series.value[50]);
  const auto reading = read(kCounter, block_of(series), 2 * kS, 9 * kS);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->end, 5 * kS);
  EXPECT_NEAR(reading->power().value, 400, 1e-9);
}

TEST(Faults, ZerosOfFailedReadsAreSkipped) {
  run::Series series = counter(400, 10);
  series.value[30] = series.value[31] = 0;
  const auto reading = read(kCounter, block_of(series), 2 * kS, 5 * kS);
  ASSERT_TRUE(reading);
  EXPECT_DOUBLE_EQ(reading->energy.joules.value, 1200);
  std::ranges::fill(series.value, 0);
  EXPECT_FALSE(read(kCounter, block_of(series), 2 * kS, 5 * kS));
}

TEST(Faults, ResetSplitsTheWindow) {
  run::Series series = counter(400, 10);
  for (std::size_t i = 40; i < series.value.size(); ++i) series.value[i] -= 1'100'000;
  const auto reading = read(kCounter, block_of(series), 3 * kS, 9 * kS);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->begin, 4 * kS) << "the longer side";
  EXPECT_EQ(reading->end, 9 * kS);
  EXPECT_NEAR(reading->power().value, 400, 1e-9);
}

TEST(Faults, WrapGivesNoNegativeEnergy) {
  run::Series series = counter(100, 10);
  series.source = run::Source::rapl_package;
  for (std::size_t i = 50; i < series.value.size(); ++i) series.value[i] -= 1'040'000;
  const Meter package{"RAPL", Boundary::host, 0.05, Standing::measured, run::Source::rapl_package};
  const auto reading = read(package, block_of(series), 4 * kS, 8 * kS);
  ASSERT_TRUE(reading);
  EXPECT_GT(reading->energy.joules.value, 0);
  EXPECT_EQ(reading->begin, 5 * kS);
}

TEST(Faults, AnImpossibleFirstSampleIsNoEnergy) {  // 53,131 W when permission arrives mid-run
  run::Series series = counter(400, 10);
  for (std::size_t i = 20; i < series.value.size(); ++i) series.value[i] += 5'313'100;
  const auto reading = read(kCounter, block_of(series), kS, 9 * kS);
  ASSERT_TRUE(reading);
  EXPECT_NEAR(reading->power().value, 400, 1e-9);
}

TEST(Faults, TheTwoSourcesOfABoardAreHeldAgainstEachOther) {  // 187 J and 327 J
  run::Block block = block_of(counter(37.4, 10));
  run::Series ring{run::Source::nvml_power_samples, {}, {}, {}};
  for (int i = 1; i <= 500; ++i) {
    ring.time.push_back(i * 20 * kMs);
    ring.value.push_back(65'400);
  }
  block.series.push_back(ring);
  const auto reading = read(kCounter, block, 2 * kS, 7 * kS);
  ASSERT_TRUE(reading);
  const auto off = ring_disagreement(kCounter, block, *reading);
  ASSERT_TRUE(off);
  EXPECT_NEAR(*off, 327.0 / 187 - 1, 1e-6);

  auto& time = block.series[1].time;  // half a second of the ring was missed
  block.series[1].value.erase(block.series[1].value.begin() + 150,
                              block.series[1].value.begin() + 175);
  time.erase(time.begin() + 150, time.begin() + 175);
  EXPECT_FALSE(ring_disagreement(kCounter, block, *reading)) << "unknown, not agreement";
}

TEST(Faults, ABreakThatTheSamplerStatesEndsAWindow) {
  run::Series before = counter(400, 10), after = counter(400, 10);
  before.time.resize(41), before.value.resize(41), before.uncertainty.resize(41);
  // It goes on at 7 s as if nothing had been: a package that wrapped an unknown number of times.
  after.time.erase(after.time.begin(), after.time.begin() + 70);
  after.value.erase(after.value.begin(), after.value.begin() + 70);
  after.uncertainty.erase(after.uncertainty.begin(), after.uncertainty.begin() + 70);
  run::Block block = block_of(before);
  block.series.push_back(after);
  const auto reading = read(kCounter, block, kS, 10 * kS);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->begin, kS) << "the longer side";
  EXPECT_EQ(reading->end, 4 * kS);
  EXPECT_TRUE(reading->broken);
  EXPECT_EQ(read(kCounter, block, 35 * kS / 10, 10 * kS)->begin, 7 * kS);
  EXPECT_FALSE(read(kCounter, block, 39 * kS / 10, 71 * kS / 10)) << "two ticks on each side";
  EXPECT_FALSE(read(kCounter, block, 8 * kS, 9 * kS)->broken);
}

run::Series package(const std::string& channel, double watts) {
  run::Series series = counter(watts, 10);
  for (std::int64_t& value : series.value) value *= 1000;
  series.source = run::Source::rapl_package;
  series.channel = channel;
  series.uncertainty.clear();
  return series;
}

TEST(Channels, PackagesAreAddedUpAndMemoryAndPlatformAreNot) {
  run::Block block = block_of(package("package-0", 90));
  block.series.push_back(package("package-1", 60));
  run::Series dram = package("package-0 dram", 20), psys = package("psys", 300);
  dram.source = run::Source::rapl_dram;
  psys.source = run::Source::rapl_psys;
  block.series.push_back(dram);
  block.series.push_back(psys);
  run::Run run;
  run.blocks.push_back(block);
  const auto meter = choose_meter(run);
  ASSERT_TRUE(meter);
  EXPECT_NEAR(read(*meter, block, kS, 9 * kS)->power().value, 150, 1e-6);
}

TEST(Channels, WhereOnePackageBreaksTheSumBreaks) {
  run::Block block = block_of(package("package-0", 90));
  run::Series whole = package("package-1", 60), late = whole;
  whole.time.resize(61), whole.value.resize(61);
  late.time.erase(late.time.begin(), late.time.begin() + 61);
  late.value.erase(late.value.begin(), late.value.begin() + 61);
  block.series.push_back(whole);
  block.series.push_back(late);
  const Meter meter{"RAPL", Boundary::host, 0.05, Standing::measured, run::Source::rapl_package};
  const auto reading = read(meter, block, kS, 9 * kS);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->end, 6 * kS);
  EXPECT_NEAR(reading->power().value, 150, 1e-6);
  EXPECT_TRUE(reading->broken);
}

TEST(Channels, TheBoardsThatTheRunUsedAreMetered) {
  run::Run run;
  run::Block block;
  for (const auto& [uuid, watts] : {std::pair("GPU-a", 400.0), {"GPU-b", 75.0}, {"GPU-c", 300.0}}) {
    run::Series series = counter(watts, 10);
    series.channel = uuid;
    // Each ticks when it likes.
    for (Nanoseconds& time : series.time) time += uuid[4] * 7 * kMs;
    block.series.push_back(series);
  }
  run.blocks.push_back(block);
  const auto power = [&] {
    const auto reading = read(*choose_meter(run), block, 2 * kS, 9 * kS);
    return reading->power().value;
  };
  EXPECT_NEAR(power(), 400, 1e-6) << "nothing is known: the first";
  run.manifest.device_uuid = "GPU-b";
  EXPECT_NEAR(power(), 75, 1e-6);
  run.devices = {{"GPU-c", "H200"}, {"GPU-a", "H200"}};
  EXPECT_NEAR(power(), 700, 1);
  EXPECT_GT(read(*choose_meter(run), block, 2 * kS, 9 * kS)->energy.half_width().value,
            1.1 * 700 * 0.002);
}

TEST(Choose, AnAmdBoardsCounterIsABoardsMeter) {
  run::Series series = package("GPU-1", 500);
  series.source = run::Source::amd_energy;
  run::Run run;
  run.blocks.push_back(block_of(series));
  const auto meter = choose_meter(run);
  ASSERT_TRUE(meter);
  EXPECT_EQ(meter->boundary, Boundary::board);
  EXPECT_NEAR(read(*meter, run.blocks[0], kS, 9 * kS)->power().value, 500, 1e-6);
}

TEST(Choose, TheBoardBeforeThePackageBeforeTheModel) {
  run::Series cpu{run::Source::host_cpu, {0, kS, 2 * kS, 3 * kS}, {0, kS, 2 * kS, 3 * kS}, {}};
  run::Series package = counter(90, 10);
  package.source = run::Source::rapl_package;
  run::Run run;
  EXPECT_FALSE(choose_meter(run));
  run.blocks.push_back(block_of(cpu));
  ASSERT_TRUE(choose_meter(run));
  EXPECT_EQ(choose_meter(run)->standing, Standing::modelled);
  EXPECT_EQ(choose_meter(run)->boundary, Boundary::host);
  EXPECT_EQ(choose_meter(run)->systematic, 1) << "a busy core draws 3 to 12 W";
  run.blocks[0].series.push_back(package);
  EXPECT_EQ(choose_meter(run)->source, run::Source::rapl_package);
  run.blocks[0].series.push_back(counter(400, 10));
  EXPECT_EQ(choose_meter(run)->boundary, Boundary::board);
  EXPECT_EQ(choose_meter(run)->standing, Standing::measured);
}

TEST(HostModel, IsProcessorTimeTimesWattsOfACore) {
  run::Series cpu{run::Source::host_cpu, {}, {}, {}};
  for (int i = 0; i <= 100; ++i) {  // two threads busy
    cpu.time.push_back(i * 20 * kMs);
    cpu.value.push_back(i * 40 * kMs + i % 3);
  }
  const run::Block block = block_of(cpu);
  const auto reading = read(kHost, block, 0, 2 * kS);
  ASSERT_TRUE(reading);
  EXPECT_NEAR(reading->energy.joules.value, 2 * 2 * kBusyCore.middle.value, 1e-6);
  EXPECT_EQ(reading->energy.standing, Standing::modelled);
  // Repeatability comes from processor time alone: not from the factor of two per core.
  EXPECT_LT(reading->energy.half_width().value, 0.01 * reading->energy.joules.value);
  EXPECT_FALSE(static_power(kHost, block)) << "the model has nothing to say of it; not 0 W";
}

TEST(HostModel, AnIdleProcessIsZeroAndKnown) {
  const run::Series cpu{run::Source::host_cpu, {0, kS, 2 * kS, 3 * kS}, {kS, kS, kS, kS}, {}};
  const auto reading = read(kHost, block_of(cpu), 0, 3 * kS);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->energy.joules, Joules(0));
}

TEST(HostModel, CoarseProcessorTimeWidensTheInterval) {
  run::Series cpu{run::Source::host_cpu, {}, {}, {}};
  for (int i = 0; i <= 50; ++i) {
    cpu.time.push_back(i * 20 * kMs);
    cpu.value.push_back(i * 20 * kMs / (10 * kMs) * (10 * kMs));
  }
  const auto reading = read(kHost, block_of(cpu), 0, kS);
  ASSERT_TRUE(reading);
  EXPECT_GE(reading->energy.half_width().value, 0.01 * kBusyCore.middle.value);
}

TEST(StaticPower, SettlesFirstAndFallsBackToIdle) {
  // 600 W until 2.2 s, then 130 W: the window begins while the board still cools.
  run::Series series = counter(130, 10);
  for (std::size_t i = 0; i < series.value.size(); ++i) {
    const auto hot = static_cast<std::int64_t>(std::min<std::size_t>(i, 22));
    series.value[i] += 47'000 * hot;
  }
  run::Block block = block_of(series);
  EXPECT_FALSE(static_power(kCounter, block));
  block.replays.push_back({run::ReplayKind::idle, {}, 5 * kS, 8 * kS, 1});
  ASSERT_TRUE(static_power(kCounter, block));
  EXPECT_EQ(static_power(kCounter, block)->origin, "idle with context");
  block.replays.push_back({run::ReplayKind::static_power, {}, 2 * kS, 5 * kS, 1});
  const auto power = static_power(kCounter, block);
  ASSERT_TRUE(power);
  EXPECT_EQ(power->origin, "spinning kernel");
  EXPECT_NEAR(power->watts.value, 130, 0.5);
  EXPECT_GT(power->half_width.value, 0);
  EXPECT_LT(power->half_width.value, 2);
}

TEST(Window, ChunksWithoutABreakAreOne) {
  const std::vector<Window> windows = contiguous({{{}, {}, 0, 100 * kMs, 50},
                                                  {{}, {}, 110 * kMs, 210 * kMs, 100},
                                                  {{}, {}, 900 * kMs, kS, 50},
                                                  {{}, {}, 2 * kS, 2 * kS, 7}});
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].end, 210 * kMs);
  EXPECT_DOUBLE_EQ(windows[0].executions(0, kS), 150);
  EXPECT_DOUBLE_EQ(windows[0].executions(50 * kMs, 160 * kMs), 75);
}

TEST(Spread, IsStudentsTOverRepeats) {
  EXPECT_NEAR(student_t(2), 12.706, 1e-3);
  EXPECT_NEAR(student_t(4), 3.182, 1e-3);
  EXPECT_EQ(spread_of_mean(std::vector<double>{5}), 0);
  EXPECT_NEAR(spread_of_mean(std::vector<double>{9, 10, 11}), 4.303 / std::sqrt(3.0), 1e-3);
  EXPECT_EQ(spread_of_mean(std::vector<double>{9, 10, 11}, 1), 0) << "explained already";
  const auto energy = [](double j) {
    return Energy::around(Joules(j), Joules(0.1), Standing::replayed);
  };
  const Energy apart = mean(std::vector<Energy>{energy(9), energy(11)});
  EXPECT_NEAR(apart.half_width().value, 12.706, 1e-3);
  const Energy close = mean(std::vector<Energy>{energy(10), energy(10)});
  EXPECT_NEAR(close.half_width().value, 0.1 / std::sqrt(2.0), 1e-9);
}

}  // namespace
}  // namespace joulediff::meter
