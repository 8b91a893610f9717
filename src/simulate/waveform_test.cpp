#include "simulate/waveform.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace joulediff::simulate {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

TEST(Waveform, JoulesAreWattsTimesSeconds) {
  Waveform waveform(5 * kMillisecond);
  waveform.add(15 * kMillisecond, 100);
  waveform.add(15 * kMillisecond, 7777);  // takes no time
  waveform.add(25 * kMillisecond, 300);
  EXPECT_DOUBLE_EQ(waveform.joules(5 * kMillisecond, 25 * kMillisecond), 4);
  EXPECT_DOUBLE_EQ(waveform.joules(10 * kMillisecond, 20 * kMillisecond), 2);
  EXPECT_DOUBLE_EQ(waveform.joules(0, 5 * kMillisecond), 0.5) << "before it, as at its begin";
  EXPECT_DOUBLE_EQ(waveform.joules(25 * kMillisecond, 35 * kMillisecond), 3);
}

TEST(Waveform, AStepIsFollowedExponentially) {
  Waveform waveform;
  waveform.add(kMillisecond, 0);
  waveform.add(1000 * kMillisecond, 100);
  for (const Response response : {Response{0.05, 0}, Response{0, 0.05}}) {
    const double at = waveform.joules(50 * kMillisecond, 51 * kMillisecond, response) / 1e-3;
    EXPECT_NEAR(at, 100 * (1 - std::exp(-49.5 / 50)), 0.05);
  }
  // Two in a row against the same by small steps.
  double y = 0, z = 0, joules = 0;
  constexpr double kStep = 1e-6;
  for (double t = 0; t < 0.099; t += kStep) {
    joules += z * kStep;
    z += (y - z) / 0.03 * kStep;
    y += (100 - y) / 0.02 * kStep;
  }
  EXPECT_NEAR(waveform.joules(0, 100 * kMillisecond, {0.02, 0.03}), joules, 1e-3 * joules);
}

RC_GTEST_PROP(Waveform, AResponseLosesNoJoules, ()) {
  Waveform waveform;
  Nanoseconds now = 0;
  const auto pieces = *rc::gen::inRange(1, 40);
  for (int i = 0; i < pieces; ++i)
    waveform.add(now += *rc::gen::inRange<Nanoseconds>(1, 100 * kMillisecond),
                 *rc::gen::inRange(0, 1000));
  const double ramp = 1e-3 * *rc::gen::inRange(0, 50), lag = 1e-3 * *rc::gen::inRange(0, 50);
  // Settled on both sides: where it began, and long after its end.
  const Nanoseconds long_after = now + 2'000 * kMillisecond;
  const double plain = waveform.joules(0, long_after);
  const double slow = waveform.joules(0, long_after, {ramp, lag});
  const double first = waveform.joules(-kMillisecond, 0) / 1e-3;
  const double last = waveform.joules(long_after, long_after + kMillisecond) / 1e-3;
  RC_ASSERT(std::abs(plain - slow - (ramp + lag) * (last - first)) < 1e-6 * (1 + plain));
}

RC_GTEST_PROP(Waveform, JoulesAddUpOverAnyCut, ()) {
  Waveform waveform;
  Nanoseconds now = 0;
  for (int i = 0; i < 20; ++i)
    waveform.add(now += *rc::gen::inRange<Nanoseconds>(1, 9 * kMillisecond),
                 *rc::gen::inRange(0, 1000));
  const auto cut = *rc::gen::inRange<Nanoseconds>(0, waveform.end());
  const Response response{0.004, 0.004};  // equal time constants too
  const double whole = waveform.joules(0, waveform.end(), response);
  const Nanoseconds times[] = {0, cut, waveform.end()};
  const auto at = waveform.joules_at(times, response);
  RC_ASSERT(std::abs(at[2] - at[0] - whole) < 1e-9 * (1 + whole));
  RC_ASSERT(at[1] >= at[0] && at[2] >= at[1]);
}

}  // namespace
}  // namespace joulediff::simulate
