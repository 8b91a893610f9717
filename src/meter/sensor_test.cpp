#include "meter/sensor.h"

#include <cmath>
#include <cstdio>
#include <ostream>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "meter/alias.h"
#include "meter/test_recorded.h"

namespace joulediff::meter {

void PrintTo(const Property& property, std::ostream* out) {
  if (property.identified())
    *out << property.value << " [" << property.low << ", " << property.high << "]";
  else
    *out << "not identified: " << property.why;
}

namespace {

constexpr Nanoseconds kMs = 1'000'000;
using enum run::Source;

bool holds(const Property& property, double truth, double slack = 1) {
  return property.identified() &&
         property.value - slack * (property.value - property.low) <= truth + 1e-12 &&
         truth <= property.value + slack * (property.high - property.value) + 1e-12;
}

// A square wave of random lengths, and a sensor whose readings are summed up from it here, not by
// the code under test.
struct Simulated {
  double period = 100, jitter = 0, window = 25, lag = 10;  // ms
  double gain = 1, noise = 2;                              // noise in watts
  double poll = 5;                                         // ms
  double off = 80, on = 400;                               // watts
};

Intervals random_load(std::mt19937& random, double seconds) {
  std::uniform_real_distribution<double> length(30, 400);
  Intervals busy;
  for (double ms = 500; ms < 1e3 * seconds;) {
    const double lasts = length(random);
    busy.emplace_back(static_cast<Nanoseconds>(ms * kMs),
                      static_cast<Nanoseconds>((ms + lasts) * kMs));
    ms += lasts + length(random);
  }
  return busy;
}

double share_on(const Intervals& busy, double from, double to) {
  double on = 0;
  for (const auto& [begin, end] : busy)
    on += std::max(0.0, std::min(to, 1e-6 * static_cast<double>(end)) -
                            std::max(from, 1e-6 * static_cast<double>(begin)));
  return on / (to - from);
}

// As a poll every few milliseconds sees it.
run::Series play(const Simulated& sensor, const Intervals& busy, double seconds,
                 std::mt19937& random) {
  std::normal_distribution<double> noise(0, 1);
  std::uniform_real_distribution<double> poll(0.5 * sensor.poll, 1.5 * sensor.poll);
  run::Series series{nvml_power_instant, {}, {}, {}};
  double now = poll(random), next = 0;
  std::int64_t value = 0;
  for (int k = 0; next < 1e3 * seconds; ++k) {
    const double at = k * sensor.period + sensor.jitter * noise(random);
    for (; now < at; now += poll(random)) {
      series.time.push_back(static_cast<Nanoseconds>(now * kMs));
      series.value.push_back(value);
    }
    const double end = at - sensor.lag;
    const double watts =
        sensor.off + (sensor.on - sensor.off) * share_on(busy, end - sensor.window, end);
    value = std::llround(1e3 * (sensor.gain * watts + sensor.noise * noise(random)));
    next = at;
  }
  return series;
}

// The sensors of a property, from the generators of rapidcheck.
Simulated any_sensor() {
  const auto between = [](int low, int high) {
    return static_cast<double>(*rc::gen::inRange(low, high));
  };
  Simulated sensor;
  sensor.period = between(60, 140);
  sensor.jitter = 0.01 * between(0, 5) * sensor.period;
  sensor.window = between(15, 100);
  sensor.lag = between(0, 60);
  sensor.gain = 0.01 * between(90, 111);
  sensor.noise = between(1, 8);
  sensor.poll = between(2, 6);
  return sensor;
}

// An interval of 95 % that is twice as wide holds but for one time in ten thousand.
RC_GTEST_PROP(SensorProperty, IntervalsHoldTheTruth, ()) {
  const Simulated sensor = any_sensor();
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  constexpr double kSeconds = 40;
  const Intervals busy = random_load(random, kSeconds);
  const run::Series series = play(sensor, busy, kSeconds, random);
  const Rhythm found = rhythm(series);
  RC_ASSERT(holds(found.period, 1e-3 * sensor.period, 2.5));
  const Response seen = response(updates(series), Load::busy(busy, kMs));
  RC_ASSERT(holds(seen.window, 1e-3 * sensor.window, 2.5));
  RC_ASSERT(holds(seen.lag, 1e-3 * sensor.lag, 2.5));
  RC_ASSERT(holds(seen.gain, sensor.gain * (sensor.on - sensor.off), 2.5));
  RC_ASSERT(holds(seen.at_zero, sensor.gain * sensor.off, 2.5));
}

TEST(Sensor, IntervalsHoldTheTruthAtTheNominalRate) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0, 1);
  constexpr int kTimes = 60;
  constexpr double kSeconds = 30;
  int period = 0, window = 0, lag = 0, gain = 0;
  for (int i = 0; i < kTimes; ++i) {
    Simulated sensor;
    sensor.period = 70 + 60 * any(random);
    sensor.jitter = 0.04 * any(random) * sensor.period;
    sensor.window = 15 + 80 * any(random);
    sensor.lag = 50 * any(random);
    sensor.gain = 0.9 + 0.2 * any(random);
    const Intervals busy = random_load(random, kSeconds);
    const run::Series series = play(sensor, busy, kSeconds, random);
    const Response seen = response(updates(series), Load::busy(busy, kMs));
    period += holds(rhythm(series).period, 1e-3 * sensor.period);
    window += holds(seen.window, 1e-3 * sensor.window);
    lag += holds(seen.lag, 1e-3 * sensor.lag);
    gain += holds(seen.gain, sensor.gain * (sensor.on - sensor.off));
  }
  // 95 % of 60 are 57; with 51 or fewer by chance once in a hundred times.
  constexpr int kAtLeast = 52;
  std::printf("  of %d intervals of 95 %%: period %d, window %d, lag %d, gain %d hold\n", kTimes,
              period, window, lag, gain);
  EXPECT_GE(period, kAtLeast);
  EXPECT_GE(window, kAtLeast);
  EXPECT_GE(lag, kAtLeast);
  EXPECT_GE(gain, kAtLeast);
}

TEST(Sensor, WhatTheSeriesDoesNotTellIsSaid) {
  run::Series few{nvml_power_instant, {0, 100 * kMs, 200 * kMs}, {80'000, 81'000, 80'500}, {}};
  EXPECT_EQ(rhythm(few).period.why, "only 2 updates");
  EXPECT_FALSE(rhythm(few).tick.identified());
  std::mt19937 random(1);
  const Intervals steady{{0, 30'000 * kMs}};
  const run::Series flat = play({}, steady, 30, random);
  EXPECT_FALSE(response(updates(flat), Load::busy(steady, kMs)).window.identified())
      << "a load without edges";
  const Intervals other = random_load(random, 30);
  const run::Series elsewhere = play({}, random_load(random, 30), 30, random);
  EXPECT_FALSE(response(updates(elsewhere), Load::busy(other, kMs)).window.identified())
      << "another load than the one it saw";
  EXPECT_FALSE(response(updates(flat), Load::busy({}, kMs)).lag.identified());
}

TEST(Sensor, ItsTickIsTheStepOfItsValues) {
  std::mt19937 random(3);
  run::Series coarse = play({}, random_load(random, 20), 20, random);
  for (std::int64_t& value : coarse.value) value = value / 250 * 250;
  EXPECT_DOUBLE_EQ(rhythm(coarse).tick.value, 0.25);
}

TEST(Sensor, AWindowOfTheLoadsPeriodTellsNothing) {
  std::mt19937 random(5);
  Intervals busy;
  for (Nanoseconds t = 0; t < 40'000 * kMs; t += 100 * kMs) busy.emplace_back(t, t + 50 * kMs);
  Simulated sensor;
  sensor.period = 83;
  sensor.window = 100;
  sensor.noise = 0.5;
  const Updates seen = updates(play(sensor, busy, 40, random));
  EXPECT_FALSE(phase_powers(seen, Load::busy(busy, kMs), 0.1).at_one.identified());
}

// What is known of the H200 (driver 580): the fields are refreshed about every 100 ms, when they
// are read; the counter moves every 100 ms; the ring has a sample every 20 ms.

TEST(H200, Periods) {
  RecordedBoard square = h200_square(), samples = h200_samples(), pulsed = h200_pulses();
  EXPECT_TRUE(holds(rhythm(series_of(square, nvml_energy)).period, 0.1));
  EXPECT_TRUE(holds(rhythm(series_of(pulsed, nvml_energy)).period, 0.1));
  EXPECT_TRUE(holds(rhythm(series_of(samples, nvml_power_samples)).period, 0.02));
  EXPECT_TRUE(holds(rhythm(series_of(pulsed, nvml_power_samples)).period, 0.02));
  for (const run::Source source : {nvml_power_instant, nvml_power_average, nvml_power_memory})
    EXPECT_TRUE(holds(rhythm(series_of(samples, source)).period, 0.1));
  const Property busy_poll = rhythm(series_of(square, nvml_power_instant)).period;
  EXPECT_NEAR(busy_poll.value, 0.1, 0.005) << "a slow poll refreshes it late";
  EXPECT_DOUBLE_EQ(rhythm(series_of(square, nvml_energy)).tick.value, 1e-3);
}

TEST(H200, WindowsAndLags) {
  RecordedBoard square = h200_square(), samples = h200_samples();
  const Load ring = Load::drawn({series_of(samples, nvml_power_samples)}, nvml_power_samples, kMs);
  const Response average = response(updates(series_of(samples, nvml_power_average)), ring);
  EXPECT_TRUE(holds(average.window, 1.0)) << "a trailing mean of one second";
  EXPECT_GT(average.explained, 0.999);
  const Response instant = response(updates(series_of(samples, nvml_power_instant)), ring);
  EXPECT_NEAR(instant.window.value, 0.025, 0.005) << "as of other boards of its generation";
  EXPECT_GT(instant.explained, 0.99);
  EXPECT_LT(instant.lag.high, 0.03);
  const Load marks = Load::busy(square.busy, kMs);
  const Response counter = response(powers(updates(series_of(square, nvml_energy))), marks);
  EXPECT_TRUE(holds(counter.window, 0.1)) << "it looks all of the time";
  EXPECT_LT(counter.lag.high, 0.02);
  const Response by_marks = response(updates(series_of(square, nvml_power_average)), marks);
  EXPECT_TRUE(holds(by_marks.window, 1.0));
}

// The alias of that period and about that length of pulse.
Alias at(const std::vector<Alias>& all, double period, double length) {
  for (const Alias& alias : all)
    if (std::abs(alias.period / period - 1) < 0.003 && std::abs(alias.length / length - 1) < 0.1)
      return alias;
  ADD_FAILURE() << "no pulses every " << period;
  return {};
}

TEST(H200, TheCounterMisreadsPulsesInStepWithIt) {
  RecordedBoard board = h200_pulses();
  ASSERT_EQ(pulses(board.busy).size(), 8U);
  const std::vector<Alias> found =
      aliases(powers(updates(series_of(board, nvml_energy))), board.busy, 0.3);
  const Alias hundred = at(found, 0.1, 0.0205), twenty = at(found, 0.02, 0.0035);
  EXPECT_TRUE(hundred.in_step);
  EXPECT_TRUE(holds(hundred.misread, 15.6 / 17.3 - 1)) << hundred.misread.value;
  EXPECT_LT(hundred.misread.high, 0);
  EXPECT_TRUE(twenty.in_step);
  EXPECT_GT(twenty.misread.low, 0);
  EXPECT_NEAR(twenty.misread.value, 0.085, 0.03);
  for (const double fair : {0.0973, 0.1017, 0.2, 0.2031})
    EXPECT_TRUE(holds(at(found, fair, 0.0205).misread, 0)) << fair;
}

// An A100 under a load of 52 ms, on and off, beside an external meter. What the load's phases draw
// is known to the tool neither in shape nor in height.

TEST(A100, PhasePowersAgreeWithTheExternalMeter) {
  auto truth = a100();
  if (!truth) GTEST_SKIP() << "JOULEDIFF_SENSOR_TRUTH names no folder of A100 series";
  const Load load = Load::busy(truth->board.busy, kMs);
  double sum[2] = {}, count[2] = {};
  for (std::size_t i = 0; i < truth->meter.time.size(); ++i) {
    const Nanoseconds time = truth->meter.time[i];
    const double share = load.mean(time - kMs, time);
    if (time < load.begin() || time > load.end() || (share > 0 && share < 1)) continue;
    sum[share == 1] += 1e-3 * static_cast<double>(truth->meter.value[i]);
    count[share == 1] += 1;
  }
  const double off = sum[0] / count[0], on = sum[1] / count[1];
  const Updates seen = updates(series_of(truth->board, nvml_power_instant));
  const Response found = phase_powers(seen, load, 0.025);
  ASSERT_TRUE(found.at_one.identified());
  EXPECT_NEAR(found.at_zero.value / off, 1, 0.1);
  EXPECT_NEAR(found.at_one.value / on, 1, 0.1);
  constexpr double kGain = 0.954;  // of such boards against external meters
  std::printf(
      "             meter      found            gain-corrected\n"
      "  off      %6.1f W   %6.1f W %+5.1f %%   %6.1f W %+5.1f %%\n"
      "  on       %6.1f W   %6.1f W %+5.1f %%   %6.1f W %+5.1f %%\n",
      off, found.at_zero.value, 100 * (found.at_zero.value / off - 1), found.at_zero.value / kGain,
      100 * (found.at_zero.value / kGain / off - 1), on, found.at_one.value,
      100 * (found.at_one.value / on - 1), found.at_one.value / kGain,
      100 * (found.at_one.value / kGain / on - 1));
  EXPECT_LT(std::abs(found.at_one.value / kGain / on - 1), 0.13);
  EXPECT_LT(std::abs(found.at_zero.value / kGain / off - 1), 0.14);
}

TEST(A100, TheWindowIsNotIdentifiedWhereItIsLeftFree) {
  auto truth = a100();
  if (!truth) GTEST_SKIP() << "JOULEDIFF_SENSOR_TRUTH names no folder of A100 series";
  const Load load = Load::busy(truth->board.busy, kMs);
  const Updates seen = updates(series_of(truth->board, nvml_power_instant));
  const Response found = response(seen, load);
  EXPECT_FALSE(found.window.identified());
  EXPECT_NE(found.window.why.find("fit alike"), std::string::npos) << found.window.why;
  EXPECT_FALSE(found.lag.identified());
  const double short_one = response(seen, load, 0.025).explained;
  EXPECT_NEAR(response(seen, load, 0.075).explained, short_one, 0.01) << "75 ms fits as well";
  EXPECT_TRUE(holds(rhythm(series_of(truth->board, nvml_power_instant)).period, 0.1012));
}

}  // namespace
}  // namespace joulediff::meter
