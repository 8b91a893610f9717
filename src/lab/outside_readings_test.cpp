#include "lab/outside_readings.h"

#include <gmock/gmock.h>

namespace joulediff::lab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Nanoseconds kToday = 1'700'000'000 * kSecond;
constexpr Instant at(Nanoseconds time) {
  return {time, kToday + time};
}

TEST(OutsideReadings, ComeInAnyOrderAndBecomeSeriesOfTheirChannels) {
  OutsideReadings readings("wall.py");
  readings.add({{kToday + 2 * kSecond, 20, "b"}, {kToday + kSecond, 10, ""}}, at(3 * kSecond));
  readings.add({{kToday + kSecond, 11, "b"}, {kToday + 4 * kSecond, 12, ""}}, at(4 * kSecond));
  Samples samples;
  readings.give_on_our_clock(samples);
  const auto series = samples.take_series();
  ASSERT_THAT(series, SizeIs(2));
  EXPECT_EQ(series[0].channel, "b");
  EXPECT_THAT(series[0].time, ElementsAre(kSecond, 2 * kSecond));
  EXPECT_EQ(series[1].channel, "wall.py");
  EXPECT_THAT(series[1].value, ElementsAre(10, 12));
  ASSERT_THAT(samples.diagnostics(), SizeIs(1));
  EXPECT_THAT(samples.diagnostics()[0].message, testing::HasSubstr("ran backwards"));
  EXPECT_EQ(samples.diagnostics()[0].count, 1u) << "each channel has its own order";
}

TEST(OutsideReadings, AClockThatIsAnHourOffIsSaidAndMoved) {
  for (const Nanoseconds off : {3600 * kSecond, -3600 * kSecond}) {
    OutsideReadings readings("wall.py");
    for (int i = 1; i < 10; ++i)
      readings.add({{kToday + off + i * kSecond, i, ""}}, at(i * kSecond + 100 * kMillisecond));
    Samples samples;
    readings.give_on_our_clock(samples);
    const auto series = samples.take_series();
    ASSERT_THAT(series, SizeIs(1));
    EXPECT_EQ(series[0].time.front(), kSecond + 100 * kMillisecond);
    ASSERT_THAT(samples.diagnostics(), SizeIs(1));
    EXPECT_EQ(samples.diagnostics()[0].rule, "record.meter_clock");
  }
}

// A recording that is killed has what came until then, all moved by the same.
TEST(OutsideReadings, AreGivenAsTheyCome) {
  OutsideReadings readings("wall.py");
  Samples samples;
  const Nanoseconds off = -3600 * kSecond;
  std::size_t given = 0;
  for (int i = 1; i < 10; ++i) {
    const Nanoseconds late = i < 5 ? 300 * kMillisecond : 100 * kMillisecond;
    readings.add({{kToday + off + i * kSecond, i, ""}}, at(i * kSecond + late));
    if (i < 3) continue;
    readings.give_on_our_clock(samples);
    for (const Samples::Piece& piece : samples.fresh()) {
      for (const Nanoseconds time : piece.series.time)
        EXPECT_EQ(time, static_cast<Nanoseconds>(++given) * kSecond + 300 * kMillisecond);
    }
  }
  EXPECT_EQ(given, 9u);
  EXPECT_THAT(samples.diagnostics(), SizeIs(1));
}

TEST(OutsideReadings, OfAFileOnlyTheTimeOfTheRecordingIsKept) {
  std::vector<device::MeterSample> file;
  for (int i = 0; i < 100; ++i) file.push_back({kToday + i * kSecond, 100, ""});
  OutsideReadings readings("wall.csv");
  readings.add(file, at(500 * kSecond));
  Samples samples;
  readings.give_between(10 * kSecond, 20 * kSecond, samples);
  EXPECT_THAT(samples.take_series().at(0).time, SizeIs(11));
  readings.add(file, at(500 * kSecond));
  readings.give_between(400 * kSecond, 410 * kSecond, samples);
  EXPECT_THAT(samples.take_series(), IsEmpty());
  EXPECT_EQ(samples.diagnostics().at(0).rule, "record.meter_file");
}

}  // namespace
}  // namespace joulediff::lab
