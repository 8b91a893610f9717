#include "simulate/readings.h"

#include <gmock/gmock.h>

#include "simulate/boards.h"

namespace joulediff::simulate {
namespace {

constexpr char kCounter[] = "energy counter, read at both ends";

Recording wave(const NamedBoard& board, const Sensors& sensors, double watts) {
  return record(square_wave(0.037, 0.5, watts, 5), board.board, sensors, {1, 0, 0, 0, 0.95, 0}, 1);
}

std::vector<std::string> names(const std::vector<Reading>& all) {
  std::vector<std::string> result;
  for (const Reading& one : all) result.push_back(one.meter);
  return result;
}

TEST(Readings, AreNearTheTruthWhereNothingBeats) {
  const NamedBoard& h200 = *find_board("h200");
  const auto all = readings(wave(h200, h200.sensors, 400));
  EXPECT_EQ(all.size(), 6u);
  for (const Reading& one : all) {
    // A second's mean holds what was before; a counter is read up to a tick late.
    const bool late = one.meter.starts_with("1 s");
    EXPECT_LT(std::abs(one.error), late ? 0.15 : 0.05) << one.meter;
    EXPECT_LT(one.error, late ? -0.03 : 0.05) << one.meter;
  }
}

TEST(Readings, AMeterThatCannotSaySaysNothing) {
  const NamedBoard& h200 = *find_board("h200");
  Sensors sensors = h200.sensors;
  EXPECT_THAT(names(readings(wave(h200, sensors, 400))), testing::Contains(kCounter));
  sensors.counter->resets = {4};  // within the trace
  EXPECT_THAT(names(readings(wave(h200, sensors, 400))), testing::Not(testing::Contains(kCounter)));
  sensors.counter.reset();
  sensors.powers.clear();
  sensors.ring.reset();
  EXPECT_TRUE(readings(wave(h200, sensors, 400)).empty());
}

TEST(Readings, AnOffsetBelowZeroDoesNotTurnACounterBack) {
  const NamedBoard& ada = *find_board("rtx4090");  // 22 W idle, 22 W less on its sensor
  const Recording recording = wave(ada, ada.sensors, 60);
  const auto counters = std::ranges::count(recording.run.blocks[0].series, run::Source::nvml_energy,
                                           &run::Series::source);
  EXPECT_EQ(counters, 1);
  const auto all = readings(recording);
  const auto counter = std::ranges::find(all, kCounter, &Reading::meter);
  ASSERT_NE(counter, all.end());
  EXPECT_NEAR(counter->error, 0.044 - 22 / 90.0, 0.06);
}

}  // namespace
}  // namespace joulediff::simulate
