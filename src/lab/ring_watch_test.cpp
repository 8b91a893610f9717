#include "lab/ring_watch.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

// A driver that stamps a sample every 20 ms with the time of day, and keeps 119 of them.
class Driver {
 public:
  explicit Driver(Nanoseconds realtime) : realtime_(realtime) {}
  void run(Nanoseconds time) {
    for (const Nanoseconds end = monotonic_ + time; monotonic_ < end;) {
      monotonic_ += 20 * kMillisecond;
      realtime_ += 20 * kMillisecond;
      ring_.push_back(
          {static_cast<std::uint64_t>(realtime_ / 1000), 1 + monotonic_ / kMillisecond});
      if (ring_.size() > 119) ring_.erase(ring_.begin());
    }
  }
  void set_clock(Nanoseconds by) { realtime_ += by; }
  RingWatch::Fetch fetch(RingWatch& watch) const {
    std::vector<device::RingSample> newer;
    for (const device::RingSample& sample : ring_)
      if (sample.time_us > watch.since_us()) newer.push_back(sample);
    std::ranges::sort(newer, {}, &device::RingSample::time_us);
    return watch.observe(monotonic_, realtime_, newer);
  }

 private:
  Nanoseconds monotonic_ = 0;
  Nanoseconds realtime_;
  std::vector<device::RingSample> ring_;
};

constexpr Nanoseconds kToday = 1'700'000'000 * kSecond;

// The power tells when a sample was taken: its time must be that.
void expect_true_times(const RingWatch::Fetch& fetch) {
  for (const RingWatch::Sample& sample : fetch.samples)
    EXPECT_EQ(sample.time / kMillisecond, sample.milliwatts - 1);
}

TEST(RingWatch, GivesEverySampleOnceOnOurClock) {
  Driver driver(kToday);
  RingWatch watch(kToday);
  std::size_t samples = 0;
  for (int i = 0; i < 20; ++i) {
    driver.run(kSecond);
    const auto fetch = driver.fetch(watch);
    expect_true_times(fetch);
    EXPECT_FALSE(fetch.lost || fetch.clock_set);
    samples += fetch.samples.size();
  }
  EXPECT_EQ(samples, 20 * 50u);
}

TEST(RingWatch, OverrunIsSaidAndAGap) {
  Driver driver(kToday);
  RingWatch watch(kToday);
  driver.run(kSecond);
  const auto before = driver.fetch(watch);
  driver.run(4 * kSecond);  // the sampler was kept waiting; the ring holds 2.4 s
  const auto late = driver.fetch(watch);
  EXPECT_TRUE(late.lost);
  expect_true_times(late);
  EXPECT_EQ(late.samples.size(), 119u);
  EXPECT_GT(late.samples.front().time - before.samples.back().time, kSecond);
  driver.run(kSecond);
  EXPECT_FALSE(driver.fetch(watch).lost);
}

TEST(RingWatch, ClockSteppingBackIsAGapAndNoWrongTime) {
  for (const Nanoseconds step : {-3600 * kSecond, -5 * kSecond, -kSecond, -100 * kMillisecond,
                                 100 * kMillisecond, 7 * kSecond}) {
    Driver driver(kToday);
    RingWatch watch(kToday);
    driver.run(3 * kSecond);
    EXPECT_FALSE(driver.fetch(watch).samples.empty());
    driver.run(kSecond / 2);
    driver.set_clock(step);
    int told = 0;
    std::size_t after = 0;
    for (int i = 0; i < 10; ++i) {
      driver.run(kSecond);
      const auto fetch = driver.fetch(watch);
      expect_true_times(fetch);
      told += fetch.clock_set;
      EXPECT_FALSE(fetch.lost) << "it was the clock";
      after += fetch.samples.size();
    }
    EXPECT_EQ(told, 1) << step;
    EXPECT_GE(after, 300u) << step;
  }
}

}  // namespace
}  // namespace joulediff::lab
