#include "lab/samples.h"

#include <gmock/gmock.h>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

using run::Source;
using testing::SizeIs;

// Three hours of a host's readings, taken away once a second as the launcher does.
TEST(Samples, HoursOfReadingsAreNotHeld) {
  constexpr Nanoseconds kPeriod = 20 * kMillisecond;
  Samples samples;
  std::size_t given = 0, most = 0;
  Nanoseconds last = 0;
  for (int second = 0; second < 3 * 3600; ++second) {
    for (int i = 0; i < 50; ++i) {
      const Nanoseconds time = second * kSecond + i * kPeriod;
      samples.add(Source::host_load, "", time, time);
      samples.add(Source::nvml_energy, "GPU-a", time, time, 5);
    }
    for (const Samples::Piece& piece : samples.fresh()) {
      given += piece.series.time.size();
      if (piece.series.source != Source::host_load) continue;
      EXPECT_GT(piece.series.time.front(), last - 1) << "in order, none twice";
      last = piece.series.time.back() + 1;
    }
    if (second % 600 == 599)
      most = std::max(most, samples.since(Source::nvml_energy, "GPU-a", 0).time.size());
  }
  EXPECT_EQ(given, 2u * 50 * 3 * 3600);
  EXPECT_LE(most, 2u * 50 * Samples::kRemembered / kSecond);
  EXPECT_GE(most, 50u * Samples::kRemembered / kSecond) << "what the replay asks for is there";
}

// What nobody takes away is not forgotten.
TEST(Samples, HoldsWhatWasNotGiven) {
  Samples samples;
  for (int i = 0; i < 100'000; ++i) samples.add(Source::host_load, "", i * kSecond, i);
  EXPECT_THAT(samples.take_series().at(0).time, SizeIs(100'000));
}

TEST(Samples, ABreakAfterMuchWasForgottenBeginsAnotherStretch) {
  Samples samples;
  const auto count = [&](Nanoseconds time, std::int64_t value, bool breaks) {
    samples.add(Source::rapl_package, "package-0", time, device::Counter::Reading{value, breaks});
  };
  for (int i = 0; i < 1000; ++i) {
    count(i * kSecond, i, false);
    if (i % 10 == 9) samples.fresh();
  }
  count(1000 * kSecond, 5, true);
  count(1001 * kSecond, 6, false);
  const auto pieces = samples.fresh();
  ASSERT_THAT(pieces, SizeIs(1));
  EXPECT_EQ(pieces[0].stretch, 1u);
  EXPECT_THAT(pieces[0].series.value, testing::ElementsAre(5, 6));
}

}  // namespace
}  // namespace joulediff::lab
