#include "attribute/presence.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace joulediff::attribute {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

run::KernelSeries trace(const std::vector<std::pair<Nanoseconds, Nanoseconds>>& kernels) {
  run::KernelSeries series;
  for (const auto& [start, duration] : kernels) {
    series.kernel.emplace_back(0);
    series.start.push_back(start);
    series.duration.push_back(duration);
  }
  return series;
}

TEST(Presence, CountsWhatWasDoneUpToAnInstant) {
  const auto series = trace({{0, 4 * kMillisecond},
                             {2 * kMillisecond, 4 * kMillisecond},
                             {9 * kMillisecond, 0},
                             {10 * kMillisecond, 2 * kMillisecond}});
  const Presence presence(series, {0, 1, 1, 0}, {1, 3, 5, 1}, 2);
  const std::vector<Nanoseconds> times{-kMillisecond, 3 * kMillisecond, 7 * kMillisecond,
                                       11 * kMillisecond, 99 * kMillisecond};
  const auto seen = presence.up_to(times, 0);
  EXPECT_EQ(seen[0].amounts, (std::vector<double>{0, 0}));
  EXPECT_EQ(seen[1].amounts, (std::vector<double>{0.75, 0.75}));
  EXPECT_NEAR(seen[1].busy, 3e-3, 1e-12);
  EXPECT_NEAR(seen[1].overlapped, 1e-3, 1e-12);
  EXPECT_EQ(seen[2].amounts, (std::vector<double>{1, 3}));
  EXPECT_NEAR(seen[2].busy, 6e-3, 1e-12);
  EXPECT_NEAR(seen[2].overlapped, 2e-3, 1e-12);
  EXPECT_EQ(seen[3].amounts, (std::vector<double>{1.5, 8}));
  EXPECT_EQ(seen[4].amounts, (std::vector<double>{2, 8}));
}

// The integral of a first-order response, by small steps.
RC_GTEST_PROP(PresenceProperty, AResponseHoldsBackWhatWasDoneLast, ()) {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> kernels;
  std::vector<std::uint32_t> classes;
  std::vector<float> amounts;
  Nanoseconds now = 0;
  for (int i = 0; i < 12; ++i) {
    now += *rc::gen::inRange<Nanoseconds>(0, 3 * kMillisecond);
    kernels.emplace_back(now, *rc::gen::inRange<Nanoseconds>(kMillisecond / 4, 2 * kMillisecond));
    classes.push_back(*rc::gen::inRange(0u, 2u));
    amounts.push_back(1);
  }
  const auto series = trace(kernels);
  const double response = 1e-3 * *rc::gen::inRange(1, 4);
  const Nanoseconds until = *rc::gen::inRange<Nanoseconds>(0, now + 5 * kMillisecond);
  const auto seen = Presence(series, classes, amounts, 2)
                        .up_to(std::vector<Nanoseconds>{until / 2, until}, response);
  constexpr Nanoseconds kStep = 1'000;
  double y[2] = {}, sum[2] = {};
  for (Nanoseconds t = 0; t < until; t += kStep) {
    double x[2] = {};
    for (std::size_t i = 0; i < kernels.size(); ++i)
      if (kernels[i].first <= t && t < kernels[i].first + kernels[i].second)
        x[classes[i]] += 1e9 / static_cast<double>(kernels[i].second);
    for (int c = 0; c < 2; ++c) {
      sum[c] += y[c] * 1e-9 * kStep;
      y[c] += (x[c] - y[c]) * 1e-9 * kStep / response;
    }
  }
  for (std::size_t c = 0; c < 2; ++c) RC_ASSERT(std::abs(seen[1].amounts[c] - sum[c]) < 0.02);
}

}  // namespace
}  // namespace joulediff::attribute
