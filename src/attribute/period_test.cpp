#include "attribute/period.h"

#include <random>
#include <string>

#include <gmock/gmock.h>

namespace joulediff::attribute {
namespace {

using testing::ElementsAre;
using testing::Ge;

using Symbols = std::vector<std::uint32_t>;

void append(Symbols& to, const Symbols& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// An embedding, layers and a head; names of its own from `names` on.
Symbols forward(std::uint32_t names, int layers, int kernels_of_layer = 9) {
  Symbols result = {1, names};
  for (int layer = 0; layer < layers; ++layer)
    for (int k = 0; k < kernels_of_layer; ++k)
      result.push_back(names + 1 + static_cast<std::uint32_t>(k % 6));
  append(result, {names + 8, 2, 3});
  return result;
}

std::vector<std::size_t> starts(const std::vector<Symbols>& steps, std::size_t at = 0) {
  std::vector<std::size_t> result;
  for (const Symbols& step : steps) {
    result.push_back(at);
    at += step.size();
  }
  return result;
}

Symbols joined(const std::vector<Symbols>& steps) {
  Symbols result;
  for (const Symbols& step : steps) append(result, step);
  return result;
}

// How many of the true starts are among the boundaries, at most `off` symbols away.
double hit(const std::vector<std::size_t>& truth, const std::vector<std::size_t>& found,
           std::size_t off) {
  std::size_t hits = 0;
  for (const std::size_t start : truth) {
    const auto near = std::ranges::lower_bound(found, start > off ? start - off : 0);
    if (near != found.end() && *near <= start + off) ++hits;
  }
  return static_cast<double>(hits) / static_cast<double>(truth.size());
}

TEST(Period, AStepIsNotItsLayers) {
  for (const int layers : {2, 12, 48}) {
    const std::vector<Symbols> steps(20, forward(10, layers));
    const auto period = find_period(joined(steps));
    ASSERT_TRUE(period) << layers;
    EXPECT_EQ(period->length, steps[0].size()) << layers;
    EXPECT_EQ(period->boundaries, starts(steps)) << layers;
    EXPECT_EQ(period->fit, 1);
    EXPECT_EQ(period->forms.size(), 1u);
  }
}

TEST(Period, WithoutAKernelThatAStepHasOnceItIsFound) {
  Symbols stream;
  for (int i = 0; i < 10; ++i) append(stream, {5, 6, 5, 6, 5, 7, 7, 7});
  const auto period = find_period(stream);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->length, 8u);
}

TEST(Period, OneKernelOverAndOver) {
  const auto period = find_period(Symbols(10, 4));
  ASSERT_TRUE(period);
  EXPECT_EQ(period->length, 1u);
  EXPECT_EQ(period->boundaries.size(), 10u);
}

TEST(Period, WhatDoesNotRepeatHasNone) {
  EXPECT_FALSE(find_period({}));
  EXPECT_FALSE(find_period(Symbols{1, 2, 1, 2}));
  Symbols rising;
  for (std::uint32_t i = 0; i < 1000; ++i) rising.push_back(i);
  EXPECT_FALSE(find_period(rising));
  std::mt19937 random(1);
  Symbols noise;
  for (int i = 0; i < 5000; ++i) noise.push_back(static_cast<std::uint32_t>(random() % 50));
  const auto period = find_period(noise);
  EXPECT_TRUE(!period || period->fit < 0.9) << period->fit;
}

// Prefill and decode, as many decodes as the request has tokens: each is a step.
TEST(Period, PhasesOfVaryingLengthAreStepsOfTheirOwn) {
  std::mt19937 random(3);
  std::vector<Symbols> steps;
  for (int request = 0; request < 40; ++request) {
    steps.push_back(forward(30, 12, 11));
    for (std::uint32_t token = 0; token < 3 + random() % 20; ++token)
      steps.push_back(forward(10, 12));
  }
  const auto period = find_period(joined(steps));
  ASSERT_TRUE(period);
  EXPECT_EQ(period->boundaries, starts(steps));
  EXPECT_EQ(period->length, steps[1].size());
  EXPECT_EQ(period->forms.size(), 2u);
  EXPECT_EQ(period->fit, 1);
}

TEST(Period, WarmUpAndInsertionsAreLeftOut) {
  std::mt19937 random(5);
  Symbols stream;
  for (std::uint32_t i = 0; i < 700; ++i)
    stream.push_back(100 + static_cast<std::uint32_t>(random() % 20));
  std::vector<std::size_t> truth;
  for (int step = 0; step < 200; ++step) {
    truth.push_back(stream.size());
    for (const std::uint32_t symbol : forward(10, 12)) {
      if (random() % 800 == 0) stream.push_back(90);  // an allocator's memset
      if (random() % 2000 != 0) stream.push_back(symbol);
    }
  }
  const auto period = find_period(stream);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->length, forward(10, 12).size());
  EXPECT_GE(hit(truth, period->boundaries, 2), 0.97);
  EXPECT_LE(period->boundaries.size(), 203u);
  EXPECT_GT(period->fit, 0.96);
}

// What an every tenth step logs makes no step of ten.
TEST(Period, AKernelInEveryTenthStepChangesNothing) {
  std::vector<Symbols> steps(100, forward(10, 12));
  for (std::size_t i = 0; i < steps.size(); i += 10) steps[i].push_back(77);
  const auto period = find_period(joined(steps));
  ASSERT_TRUE(period);
  EXPECT_EQ(period->length, forward(10, 12).size());
  EXPECT_GE(hit(starts(steps), period->boundaries, 1), 0.98);
}

TEST(Period, AStepBeginsBehindTheLongestPause) {
  Symbols stream;
  std::vector<Nanoseconds> pauses;
  for (int step = 0; step < 20; ++step)
    for (const std::uint32_t symbol : {5u, 6u, 7u, 8u}) {
      stream.push_back(symbol);
      pauses.push_back(symbol == 7 ? 1'000'000 : 1'000);
    }
  const auto period = find_period(stream, pauses);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->boundaries.at(1) % 4, 2u);
}

}  // namespace
}  // namespace joulediff::attribute
