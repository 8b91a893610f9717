#include "meter/calibrate.h"

#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "meter/test_recorded.h"

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kS = 1'000'000'000;
using enum run::Source;

// A recording with those series, in which the load was one kernel for each busy time.
run::Run recorded(RecordedBoard board) {
  run::Run run;
  run.manifest.device = "NVIDIA H200";
  run.manifest.facts = {{"driver", "580.159"}, {"wall_minus_monotonic_ns", "0"}};
  run.kernels.push_back({"load", {}, {}, run::KernelKind::kernel});
  for (const auto& [begin, end] : board.busy) {
    board.block.trace_kernels.kernel.push_back(run::KernelId(0));
    board.block.trace_kernels.start.push_back(begin);
    board.block.trace_kernels.duration.push_back(end - begin);
  }
  board.block.begin = board.block.series.front().time.front();
  board.block.end = board.block.series.front().time.back();
  run.blocks.push_back(std::move(board.block));
  return run;
}

const SensorModel& model(const Profile& profile, run::Source source) {
  for (const SensorModel& one : profile.sensors)
    if (one.source == source) return one;
  ADD_FAILURE() << "no " << name_of(source);
  return profile.sensors.front();
}

std::string shown(const Property& property, double scale, const char* unit) {
  char text[120];
  if (!property.identified()) return "not identified: " + property.why;
  std::snprintf(text, sizeof text, "%.4g %s (%.4g to %.4g)", scale * property.value, unit,
                scale * property.low, scale * property.high);
  return text;
}

void row(const char* what, const char* reference, const std::string& found) {
  std::printf("  %-34s %-16s %s\n", what, reference, found.c_str());
}

TEST(Calibrate, FindsWhatIsKnownOfAnH200FromItsSeriesAlone) {
  const Profile square = calibrate(recorded(h200_square())).at(0);
  const Profile samples = calibrate(recorded(h200_samples())).at(0);
  const Profile pulsed = calibrate(recorded(h200_pulses())).at(0);
  EXPECT_EQ(square.driver, "580.159");
  const SensorModel& counter = model(square, nvml_energy);
  const SensorModel& ring = model(samples, nvml_power_samples);
  const SensorModel& instant = model(samples, nvml_power_instant);
  const SensorModel& average = model(samples, nvml_power_average);
  const auto found_alias = [&](double period, double length) {
    for (const Alias& alias : model(pulsed, nvml_energy).aliases)
      if (std::abs(alias.period / period - 1) < 0.003 && std::abs(alias.length / length - 1) < 0.1)
        return alias.misread;
    return Property::unknown("no such pulses");
  };
  std::printf("  %-34s %-16s %s\n", "NVIDIA H200", "reference", "found from the series");
  row("counter: period", "100 ms", shown(counter.period, 1e3, "ms"));
  row("counter: tick", "1 mJ", shown(counter.tick, 1e3, "mJ"));
  row("counter: window", "100 ms", shown(counter.window, 1e3, "ms"));
  row("counter: share of time looked at", "100 %", shown(counter.sampled, 100, "%"));
  row("ring: period", "20 ms", shown(ring.period, 1e3, "ms"));
  row("instant field: period", "100 ms", shown(instant.period, 1e3, "ms"));
  row("instant field: window", "25 ms (H100)", shown(instant.window, 1e3, "ms"));
  row("instant field: looked at", "25 % (H100)", shown(instant.sampled, 100, "%"));
  row("average field: period", "100 ms", shown(average.period, 1e3, "ms"));
  row("average field: window", "1000 ms", shown(average.window, 1e3, "ms"));
  row("counter: 20.5 ms pulses at 100.0", "-7 to -10 %", shown(found_alias(0.1, 0.0205), 100, "%"));
  row("counter: 20.5 ms pulses at 101.7", "right", shown(found_alias(0.1017, 0.0205), 100, "%"));
  row("counter: 20.5 ms pulses at 200.0", "right", shown(found_alias(0.2, 0.0205), 100, "%"));
  row("counter: 3.5 ms pulses at 20.0", "+7 to +10 %", shown(found_alias(0.02, 0.0035), 100, "%"));
  row("instant field against the counter", "misreads",
      shown(model(pulsed, nvml_power_instant).gain, 1, ""));
  row("ring against the counter", "agree", shown(model(pulsed, nvml_power_samples).gain, 1, ""));

  EXPECT_LT(std::abs(counter.period.value / 0.1 - 1), 0.005);
  EXPECT_LT(std::abs(ring.period.value / 0.02 - 1), 0.005);
  EXPECT_LT(instant.sampled.high, 0.5) << "it looks part of the time";
  EXPECT_GT(counter.sampled.low, 0.9) << "it looks all of the time";
  EXPECT_EQ(average.against, "nvml_power_samples");
  EXPECT_EQ(counter.against, "the load");
  EXPECT_NEAR(model(pulsed, nvml_power_samples).gain.value, 1, 0.03);
  EXPECT_EQ(model(samples, nvml_power_memory).gain.why, "it sees the memory alone");
}

// A board with known floors and costs, whose counter ticks every 100 ms.
class Bench {
 public:
  Bench() {
    run_.manifest.facts["driver"] = "1";
    counter_.source = nvml_energy;
    counter_.channel = temperature_.channel = "GPU-1";
    temperature_.source = nvml_temperature;
  }
  void spend(double seconds, double watts, double celsius, run::Replay replay = {}) {
    replay.begin = now_;
    const double until = 10 * seconds;
    for (int i = 0; i < static_cast<int>(until); ++i) {
      now_ += 100 * kMs;
      joules_ += 0.1 * watts;
      counter_.time.push_back(now_);
      counter_.value.push_back(std::llround(1e3 * joules_));
      counter_.uncertainty.push_back(kMs);
      temperature_.time.push_back(now_);
      temperature_.value.push_back(std::llround(celsius));
    }
    replay.end = now_;
    if (replay.count > 0) block_.replays.push_back(replay);
    now_ += kS;  // and another piece begins
  }
  void load(const std::string& signature, double watts, std::uint64_t count, double seconds = 4) {
    run_.signatures.push_back({signature});
    spend(seconds, watts, 50,
          {run::ReplayKind::op, run::SignatureId(run_.signatures.size() - 1), 0, 0, count});
  }
  run::Run done() {
    block_.end = now_;
    block_.series = {counter_, temperature_};
    run_.blocks = {block_};
    return run_;
  }

 private:
  run::Run run_;
  run::Block block_;
  run::Series counter_, temperature_;
  Nanoseconds now_ = kS;
  double joules_ = 1000;
};

run::Run bench() {
  Bench bench;
  bench.load("calibrate.idle(state=no context)", 77, 1);
  const auto spin = [&](double watts, double celsius) {
    bench.spend(4, watts, celsius, {run::ReplayKind::static_power, {}, 0, 0, 4000});
  };
  spin(130, 35);
  bench.spend(4, 119, 40, {run::ReplayKind::idle, {}, 0, 0, 4000});
  // 130 W static at 35 degrees and 2 W more at 55: 131 W. 4 s of 1e12 FLOP each millisecond.
  bench.load("calibrate.matmul(dtype=bfloat16, unit=matrix, values=zeros, flop=1e+12)", 331, 4000);
  bench.load("calibrate.matmul(dtype=bfloat16, unit=matrix, values=random, flop=1e+12)", 631, 4000);
  bench.load("calibrate.copy(level=hbm, values=random, byte=2e+09)", 431, 4000);
  bench.load("calibrate.copy(level=hbm, values=zeros)", 431, 4000);  // says not how much
  spin(131, 45);
  spin(132, 55);
  return bench.done();
}

TEST(Calibrate, FloorsAndCostsOfABoard) {
  const std::vector<Profile> profiles = calibrate(bench());
  ASSERT_EQ(profiles.size(), 1U);
  const Profile& profile = profiles.front();
  ASSERT_EQ(profile.floors.size(), 5U);
  EXPECT_NEAR(profile.floors[0].watts.value, 130, 0.01);
  EXPECT_EQ(profile.floors[0].state, "spinning kernel");
  EXPECT_EQ(profile.floors[0].celsius, 35);
  EXPECT_EQ(profile.floors[4].state, "no context");
  EXPECT_NEAR(profile.floors[4].watts.value, 77, 0.01);
  EXPECT_NEAR(profile.static_per_celsius.value, 0.1, 1e-3);
  const auto floor = static_power(profile);
  ASSERT_TRUE(floor);
  EXPECT_NEAR(floor->watts.value, 131, 0.01);

  ASSERT_EQ(profile.coefficients.size(), 2U);
  const Coefficient& matmul = profile.coefficients[0];
  EXPECT_EQ(matmul.what, "matmul dtype=bfloat16 unit=matrix");
  EXPECT_EQ(matmul.per, "flop");
  ASSERT_EQ(matmul.by_values.size(), 2U);
  EXPECT_NEAR(matmul.by_values[0].second.value, 0.2e-12, 1e-15);
  EXPECT_NEAR(matmul.by_values[1].second.value, 0.5e-12, 1e-15);
  EXPECT_LE(matmul.joules.low, 0.2e-12);
  EXPECT_GE(matmul.joules.high, 0.5e-12) << "operand values are its spread";
  EXPECT_NEAR(profile.coefficients[1].joules.value, 0.15e-9, 1e-12);
}

TEST(Calibrate, AProfileIsReadAsItWasWritten) {
  std::vector<Profile> profiles = calibrate(bench());
  profiles.push_back(calibrate(recorded(h200_samples())).at(0));
  const std::string text = to_json(profiles);
  const auto again = profiles_from_json(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), text);
  for (const char* damaged : {"", "{}", "[]", R"({"schema":"joulediff.calibrate/2","boards":[]})",
                              R"({"schema":"joulediff.calibrate/1","boards":[{"board":1}]})"})
    EXPECT_EQ(profiles_from_json(damaged).error().code, ExitCode::bad_input) << damaged;
}

TEST(Calibrate, ARunCarriesTheProfileOfItsBoard) {
  run::Run run;
  EXPECT_FALSE(profile_of(run, "GPU-1"));
  run.manifest.facts[profile_fact("GPU-1")] = to_json(calibrate(bench()));
  EXPECT_FALSE(profile_of(run, "GPU-2"));
  const auto kept = profile_of(run, "GPU-1");
  ASSERT_TRUE(kept);
  EXPECT_NEAR(static_power(*kept)->watts.value, 131, 0.01);
}

TEST(Calibrate, NothingIsMadeUp) {
  EXPECT_TRUE(calibrate(run::Run{}).empty());
  run::Run run;
  run.blocks.emplace_back();
  run.blocks[0].series.push_back({nvml_power_instant, {0, kS}, {80'000, 81'000}, {}, "GPU-1"});
  const Profile profile = calibrate(run).at(0);
  const SensorModel& only = profile.sensors.at(0);
  for (const Property* property : {&only.period, &only.jitter, &only.tick, &only.window, &only.lag,
                                   &only.sampled, &only.gain, &profile.static_per_celsius})
    EXPECT_FALSE(property->identified());
  EXPECT_FALSE(only.no_aliases.empty());
  EXPECT_FALSE(static_power(profile));
  EXPECT_TRUE(profile.coefficients.empty());
}

}  // namespace
}  // namespace joulediff::meter
