#include "lab/tick_watch.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

// A counter that moves every `period`, read by the watch at its own pace; each read takes 3 ms.
std::vector<Tick> watch_counter(Nanoseconds period, Nanoseconds length, int* reads = nullptr) {
  TickWatch watch;
  std::vector<Tick> ticks;
  for (Nanoseconds time = 0; time < length;) {
    const Nanoseconds begin = std::max(time, watch.next_read());
    const Nanoseconds end = begin + 3 * kMillisecond;
    if (reads) ++*reads;
    if (const auto tick = watch.observe(begin, end, end / period)) ticks.push_back(*tick);
    time = end;
  }
  return ticks;
}

TEST(TickWatch, TimesEveryTickWithinItsStatedWidth) {
  for (Nanoseconds period : {20 * kMillisecond, 100 * kMillisecond, 500 * kMillisecond}) {
    const std::vector<Tick> ticks = watch_counter(period, 30 * kSecond);
    EXPECT_GE(ticks.size(), static_cast<std::size_t>(30 * kSecond / period - 2)) << period;
    for (const Tick& tick : ticks) {
      EXPECT_LE(std::abs(tick.time - tick.value * period), tick.half_width) << period;
      EXPECT_LE(tick.half_width, 2 * kMillisecond + 1) << period;
    }
  }
}

TEST(TickWatch, ReadsLittleBetweenTicks) {
  int reads = 0;
  watch_counter(100 * kMillisecond, 10 * kSecond, &reads);
  EXPECT_LE(reads, 600);  // a reader without rests makes 2500
}

TEST(TickWatch, SaysNothingOfACounterThatStandsStill) {
  TickWatch watch;
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(watch.observe(i * kMillisecond, i * kMillisecond, 42));
}

TEST(TickWatch, SaysOnceThatACounterIsFrozen) {
  TickWatch watch;
  int said = 0;
  for (int i = 0; i < 1000; ++i) {
    watch.observe(i * 10 * kMillisecond, i * 10 * kMillisecond, 42);
    said += watch.froze();
  }
  EXPECT_EQ(said, 1);
  EXPECT_TRUE(watch.observe(10 * kSecond, 10 * kSecond, 43));
  EXPECT_FALSE(watch.froze());
  for (int i = 1001; i < 2000; ++i) {
    watch.observe(i * 10 * kMillisecond, i * 10 * kMillisecond, 43);
    said += watch.froze();
  }
  EXPECT_EQ(said, 2);
}

TEST(TickWatch, StatesAWideIntervalForATickThatItSlept) {
  TickWatch watch;
  watch.observe(0, 0, 1);
  watch.observe(kMillisecond, 2 * kMillisecond, 2);
  watch.observe(101 * kMillisecond, 102 * kMillisecond, 2);
  const auto late = watch.observe(301 * kMillisecond, 302 * kMillisecond, 3);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->time, 202 * kMillisecond);
  EXPECT_EQ(late->half_width, 100 * kMillisecond);
}

TEST(TickWatch, FindsTheHundredMillisecondsOfAnH200) {
  std::ifstream file(JOULEDIFF_SOURCE_DIR "/tests/fakes/nvml/h200_counter.txt");
  TickWatch watch;
  std::vector<Tick> ticks;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    Nanoseconds end = 0;
    std::int64_t value = 0;
    ASSERT_TRUE(fields >> end >> value);
    if (const auto tick = watch.observe(end - 3 * kMillisecond, end, value)) ticks.push_back(*tick);
  }
  ASSERT_GE(ticks.size(), 40u);
  const Nanoseconds span = ticks.back().time - ticks.front().time;
  EXPECT_NEAR(static_cast<double>(span) / static_cast<double>(ticks.size() - 1), 100e6, 1e6);
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const Nanoseconds width = ticks[i].half_width + ticks[i - 1].half_width;
    EXPECT_LE(std::abs(ticks[i].time - ticks[i - 1].time - 100 * kMillisecond),
              width + 6 * kMillisecond);  // the counter's own jitter
  }
}

}  // namespace
}  // namespace joulediff::lab
