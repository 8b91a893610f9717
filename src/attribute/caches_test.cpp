#include "attribute/caches.h"

#include <cmath>

#include <gtest/gtest.h>

#include "attribute/floor.h"

namespace joulediff::attribute {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

// A chain of operators, each on what its predecessor made and on weights of its own.
struct Chain {
  run::Run run;

  run::TensorId tensor(std::int64_t megabytes) {
    run::Tensor tensor;
    tensor.storage = run.tensors.size();
    tensor.shape = {megabytes * kMillion};
    tensor.stride = {1};
    tensor.fingerprint.dtype = value::DType::int8;
    run.tensors.push_back(tensor);
    return run::TensorId(run.tensors.size() - 1);
  }
  void add(std::int64_t weights, std::int64_t made) {
    run::Operator op;
    if (!run.operators.empty()) op.inputs = {run.operators.back().outputs[0]};
    op.inputs.push_back(tensor(weights));
    op.outputs = {tensor(made)};
    run.operators.push_back(op);
  }
  double extra(std::size_t op) const {
    return Caches(run).extra(run::OperatorId(op), 1, {}).joules;
  }
};

constexpr double kPerMegabyte = 60e-12 * 1e6;

TEST(Caches, WeightsOfAModelThatDoesNotFitAreCold) {
  Chain chain;
  for (int layer = 0; layer < 20; ++layer) chain.add(10, 1);
  for (std::size_t layer = 1; layer < 20; ++layer)
    EXPECT_NEAR(chain.extra(layer), 10 * kPerMegabyte, 1e-12) << "what the one before made is warm";
}

TEST(Caches, AModelThatFitsIsWarm) {
  Chain chain;
  for (int layer = 0; layer < 4; ++layer) chain.add(5, 1);
  for (std::size_t layer = 0; layer < 4; ++layer) EXPECT_EQ(chain.extra(layer), 0);
}

TEST(Caches, WhatDoesNotFitWasColdInReplayToo) {
  Chain chain;
  for (int layer = 0; layer < 4; ++layer) chain.add(200, 1);
  for (std::size_t layer = 0; layer < 4; ++layer) EXPECT_EQ(chain.extra(layer), 0);
}

TEST(Caches, WithoutTensorsTheTimeTells) {
  run::Run run;
  run.operators.resize(1);
  const Caches caches(run);
  const auto unknown = caches.extra(run::OperatorId(0), 2, std::nullopt),
             same = caches.extra(run::OperatorId(0), 2, Slowdown{0, 0.002}),
             slow = caches.extra(run::OperatorId(0), 2, Slowdown{0.04, 0.002});
  EXPECT_GT(unknown.half_width, unknown.joules) << "it may be warm";
  EXPECT_EQ(same.joules, 0);
  EXPECT_NEAR(same.half_width, 2 * 1.5 * 0.002, 1e-12);
  EXPECT_NEAR(slow.joules, 2 * 1.5 * 0.04, 1e-12);
  EXPECT_GT(slow.half_width, 2 * 0.5 * 0.04) << "up to twice as much as the time";
  EXPECT_EQ(caches.extra(run::OperatorId(0), -1, Slowdown{1, 0}).joules, 0);
}

TEST(Floor, RisesWithTheTemperature) {
  const Floor floor({Watts(120), Watts(1), "spinning kernel"}, 45);
  EXPECT_EQ(floor.at(45).value, 120);
  EXPECT_EQ(floor.at(45).half_width, 0);
  EXPECT_NEAR(floor.at(65).value, 124.8, 1e-9);
  EXPECT_NEAR(floor.at(65).half_width, 4.8, 1e-9);
  EXPECT_NEAR(floor.power_at(65).half_width.value, std::hypot(4.8, 1), 1e-9);
}

TEST(Floor, GoesWithTheVoltageOfTheClock) {
  const Floor floor({Watts(120), Watts(1), "spinning kernel"}, std::nullopt, 1980);
  EXPECT_EQ(floor.at({}, 1980).value, 120);
  EXPECT_NEAR(floor.at({}, 1500).value, 120 * std::pow(1500. / 1980, 0.375), 1e-9);
  EXPECT_GT(floor.at({}, 1500).half_width, 10) << "it may as well not have changed";
  EXPECT_EQ(floor.at({}, std::nullopt).value, 120);
}

TEST(Floor, IsTakenAsItIsWhereNoTemperatureIsKnown) {
  const Floor floor({Watts(120), Watts(1), "spinning kernel"}, std::nullopt);
  EXPECT_EQ(floor.at(65).value, 120);
  EXPECT_EQ(floor.power_at(std::nullopt).half_width.value, 1);
}

}  // namespace
}  // namespace joulediff::attribute
