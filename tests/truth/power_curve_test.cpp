// The power curve against what a simulated board really drew: random programs and boards, with the
// sensors that boards have, and without some of them.
#include "meter/power_curve.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "meter/stretch.h"
#include "simulate/random_program.h"

namespace joulediff {
namespace {

using meter::PowerCurve;
using meter::PowerSegment;

constexpr std::uint64_t kFirstSeed = 100000;

enum class Has { counter_and_fields, ring, counter, no_counter, average };

struct Scene {
  simulate::Recording recording;
  double gain = 1, offset = 0;  // of the counter and its fellows: systematic, in no interval
  double joules(Nanoseconds from, Nanoseconds to) const {
    return gain * recording.history.waveform.joules(from, to) +
           offset * to_seconds(to - from).value;
  }
};

Scene scene(std::uint64_t seed, bool strange, Has has) {
  simulate::Draw draw = simulate::draw(seed, strange);
  simulate::Sensors& sensors = draw.sensors;
  const double gain = sensors.powers.front().gain, offset = sensors.powers.front().offset;
  if (has == Has::ring || (has == Has::no_counter && seed % 2 == 0)) {
    sensors.ring.emplace();
    // As an H200's: not on the dot, and a part of the time unseen.
    sensors.ring->power.jitter = 0.0015;
    sensors.ring->power.window = 0.018;
    sensors.ring->power.gain = gain;
    sensors.ring->power.offset = offset;
  }
  if (has == Has::counter) sensors.powers.clear();
  if (has == Has::no_counter || has == Has::average) sensors.counter.reset();
  if (has == Has::average) sensors.powers.erase(sensors.powers.begin());
  return {simulate::record(draw.program, draw.board, sensors, draw.passes, draw.seed), gain,
          offset};
}

struct Held {
  std::size_t all = 0, held = 0;
  void add(double low, double truth, double high) {
    ++all;
    held += low <= truth && truth <= high;
  }
  double share() const { return static_cast<double>(held) / static_cast<double>(all); }
};

void add_segments(const PowerCurve& curve, const Scene& scene, Held& count) {
  for (const PowerSegment& one : curve.segments())
    if (one.known)
      count.add(one.low.value, scene.joules(one.begin, one.end) / one.seconds().value,
                one.high.value);
}

// Windows that begin and end anywhere.
void add_windows(const PowerCurve& curve, const Scene& scene, simulate::Random& random,
                 Held& count) {
  const Nanoseconds begin = curve.segments().front().begin, end = curve.segments().back().end;
  for (int i = 0; i < 50; ++i) {
    Nanoseconds at[2];
    for (Nanoseconds& one : at)
      one = begin + std::llround(random.uniform(0, 1) * static_cast<double>(end - begin));
    std::ranges::sort(at);
    if (const auto energy = curve.energy(at[0], at[1]))
      count.add(energy->low.value, scene.joules(at[0], at[1]), energy->high.value);
  }
}

class PowerCurveTruth : public testing::TestWithParam<Has> {};

TEST_P(PowerCurveTruth, IntervalsHoldTheMeanPowerOfSegmentsAndTheEnergyOfWindows) {
  Held segments, windows;
  simulate::Random random(1);
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 16; ++seed) {
    const Scene one = scene(seed, false, GetParam());
    const auto curves = meter::power_curves(one.recording.run);
    ASSERT_EQ(curves.size(), 1u);
    add_segments(curves.front(), one, segments);
    add_windows(curves.front(), one, random, windows);
  }
  ASSERT_GT(segments.all, 200u);
  ASSERT_GT(windows.all, 200u);
  EXPECT_GE(segments.share(), 0.93);
  EXPECT_GE(windows.share(), 0.95);
}
INSTANTIATE_TEST_SUITE_P(All, PowerCurveTruth,
                         testing::Values(Has::counter_and_fields, Has::ring, Has::counter,
                                         Has::no_counter, Has::average));

// Of any counter, those that lag, alias, stand still and start again, too.
TEST(PowerCurve, IsClosedAgainstTheCounter) {
  std::size_t pairs = 0;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 16; ++seed) {
    const Scene one =
        scene(seed, seed % 2 == 0, seed % 4 < 2 ? Has::ring : Has::counter_and_fields);
    for (const PowerCurve& curve : meter::power_curves(one.recording.run)) {
      if (curve.meter.lag > 0) continue;  // what such a counter holds back is added
      const run::Block& block = one.recording.run.blocks[curve.block];
      for (const meter::Stretch& ticks :
           meter::stretches(curve.meter, block, block.begin, block.end)) {
        simulate::Random random(seed);
        for (int i = 0; ticks.size() > 4 && i < 40; ++i) {
          const auto last = static_cast<int>(ticks.size()) - 2;
          const auto from = static_cast<std::size_t>(random.between(1, last - 1));
          const auto to =
              static_cast<std::size_t>(random.between(static_cast<int>(from) + 1, last));
          const auto energy = curve.energy(ticks[from].time, ticks[to].time);
          ASSERT_TRUE(energy);
          // The largest power beside a tick, as the counter or as the curve has it.
          const auto beside = [&](std::size_t k) {
            double most = 0;
            for (const PowerSegment& segment : curve.segments())
              if (segment.begin <= ticks[k].time && segment.end >= ticks[k].time)
                most = std::max(most, segment.high.value);
            return most;
          };
          const double within = beside(from) * ticks[from].uncertainty +
                                beside(to) * ticks[to].uncertainty + 8.1;  // quantum of 4 J, twice
          EXPECT_NEAR(energy->joules.value, ticks[to].joules - ticks[from].joules, within)
              << "seed " << seed;
          ++pairs;
        }
      }
    }
  }
  EXPECT_GT(pairs, 400u);
}

// The finer the sensors the narrower what is said of 20 ms.
TEST(PowerCurve, TellsEdgesOfTheLoadWhereThereIsARing) {
  const auto distance = [](Has has) {
    double sum = 0, time = 0;
    for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 8; ++seed) {
      const Scene one = scene(seed, false, has);
      const PowerCurve curve = meter::power_curves(one.recording.run).front();
      constexpr Nanoseconds kPiece = 20'000'000;
      const Nanoseconds end = curve.segments().back().end;
      for (Nanoseconds at = curve.segments().front().begin; at + kPiece < end; at += kPiece)
        if (const auto energy = curve.energy(at, at + kPiece)) {
          sum += std::abs(energy->joules.value - one.joules(at, at + kPiece));
          time += to_seconds(kPiece).value;
        }
    }
    return sum / time;
  };
  const double ring = distance(Has::ring), counter = distance(Has::counter);
  EXPECT_LT(ring, counter / 2);
}

}  // namespace
}  // namespace joulediff
