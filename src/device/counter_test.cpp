#include "device/counter.h"

#include <gtest/gtest.h>

namespace joulediff::device {
namespace {

constexpr Nanoseconds kS = 1'000'000'000;

// Millijoules, at most 5 kW, in ticks of 100 ms; 32 bits wide, or 64.
Counter board() {
  return {std::int64_t{1} << 32, 5e6, kS / 10};
}

TEST(Counter, GoesOn) {
  Counter counter = board();
  EXPECT_EQ(counter.next(0, 1000).value, 1000);
  const auto next = counter.next(kS, 701'000);
  EXPECT_EQ(next.value, 701'000);
  EXPECT_FALSE(next.breaks);
}

TEST(Counter, WrapOfThirtyTwoBitsGoesOn) {
  Counter counter = board();
  constexpr std::int64_t kRange = std::int64_t{1} << 32;
  counter.next(0, kRange - 100'000);
  const auto wrapped = counter.next(kS, 250'000);
  EXPECT_FALSE(wrapped.breaks);
  EXPECT_EQ(wrapped.value, kRange + 250'000);
  EXPECT_EQ(counter.next(2 * kS, 600'000).value, kRange + 600'000);
}

TEST(Counter, ResetBreaks) {
  Counter counter = board();
  counter.next(0, 3'000'000);
  const auto reset = counter.next(kS, 70'000);
  EXPECT_TRUE(reset.breaks) << "a wrap would be 4.3 MJ in a second";
  EXPECT_EQ(reset.value, 70'000);
  const auto after = counter.next(2 * kS, 140'000);
  EXPECT_FALSE(after.breaks);
  EXPECT_EQ(after.value, 140'000);
}

TEST(Counter, ResetOfAWideCounterBreaks) {
  Counter counter = board();
  counter.next(0, std::int64_t{1} << 40);
  EXPECT_TRUE(counter.next(kS, (std::int64_t{1} << 40) - 1).breaks);
}

TEST(Counter, FirstSampleAbsurd) {  // 53,131 W when permission arrives mid-run
  Counter counter = board();
  counter.next(0, 1);
  EXPECT_TRUE(counter.next(kS, 53'131'000).breaks);
  EXPECT_FALSE(counter.next(2 * kS, 53'531'000).breaks);
}

TEST(Counter, AGapInWhichItMayHaveWrappedTwiceBreaks) {
  Counter package(65'532'610'987, 5000e6, kS / 100);  // 13 s at 5 kW
  package.next(0, 1'000'000);
  EXPECT_FALSE(package.next(10 * kS, 2'000'000'000).breaks);
  EXPECT_TRUE(package.next(60 * kS, 3'000'000'000).breaks) << "it looks as if it went on";
  EXPECT_EQ(package.next(61 * kS, 3'100'000'000).value, 3'100'000'000);
}

}  // namespace
}  // namespace joulediff::device
