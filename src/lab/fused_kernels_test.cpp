#include "lab/fused_kernels.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulediff::lab {
namespace {

using ::testing::ElementsAre;

// Operators by the kernels that they name, and kernels launched under operator `under` of a step.
struct Fixture {
  run::Run run;
  run::KernelSeries order;

  void op(const std::string& kernels) {
    run::Operator op;
    op.name = "jax.op";
    op.arguments = kernels.empty() ? "{}" : "{\"kernels\":[" + kernels + "]}";
    run.operators.push_back(op);
  }
  void launch(const std::string& name, std::size_t under, std::uint32_t step = 2) {
    order.kernel.emplace_back(run.kernels.size());
    run.kernels.push_back({name, {}, {}, run::KernelKind::kernel});
    order.start.push_back(static_cast<Nanoseconds>(order.start.size()));
    order.duration.push_back(1);
    order.stream.push_back(7);
    order.op.emplace_back(under);
    order.step.push_back(step);
  }
  std::vector<int> charged() {
    charge_by_name(run, order);
    std::vector<int> ops;
    for (const run::OperatorId op : order.op)
      ops.push_back(op.valid() ? static_cast<int>(op.index()) : -1);
    return ops;
  }
};

TEST(FusedKernels, AreThoseOfTheOperatorThatNamesThem) {
  Fixture f;
  f.op("");
  f.op(R"("loop_fusion_1")");
  f.op(R"("fusion_2","fusion_2_1")");
  for (const char* name : {"loop_fusion_1", "fusion_2", "fusion_2_1"}) f.launch(name, 0);
  for (const char* name : {"fusion_2_1", "loop_fusion_1"}) f.launch(name, 0, 3);
  EXPECT_THAT(f.charged(), ElementsAre(1, 2, 2, 2, 1));
}

TEST(FusedKernels, TheIterationsOfALoopFollowOneAnother) {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.op(R"("body_fusion")");
  for (int i = 0; i < 3; ++i) f.launch("body_fusion", 0);
  EXPECT_THAT(f.charged(), ElementsAre(0, 1, 2));
}

TEST(FusedKernels, TwoCallsMayHaveKernelsOfOneName) {
  Fixture f;
  for (int i = 0; i < 4; ++i) f.op(R"("fusion")");
  f.launch("fusion", 0);
  f.launch("fusion", 2);
  f.launch("fusion", 2);
  EXPECT_THAT(f.charged(), ElementsAre(0, 2, 3));
}

TEST(FusedKernels, ALibrarysKernelsAreThoseOfTheOperatorBetweenItsNeighbours) {
  Fixture f;
  f.op(R"("fusion_1")");
  f.op(R"("custom_call_2")");
  f.op(R"("fusion_3")");
  f.op(R"("custom_call_4")");
  f.op(R"("custom_call_5")");
  for (const char* name : {"fusion_1", "splitk_gemm", "splitk_reduce", "fusion_3", "gemm", "gemm"})
    f.launch(name, 0);
  EXPECT_THAT(f.charged(), ElementsAre(0, 1, 1, 2, 3, 4));
}

TEST(FusedKernels, WhatNoOperatorCanHaveLaunchedIsNobodys) {
  Fixture f;
  f.op(R"("fusion_1")");
  f.op(R"("fusion_2")");
  for (const char* name : {"fusion_1", "memset", "fusion_2"}) f.launch(name, 0);
  EXPECT_THAT(f.charged(), ElementsAre(0, -1, 1));
}

TEST(FusedKernels, OtherProgramsAreLeftAlone) {
  Fixture f;
  f.op("");
  f.run.operators[0].arguments = R"({"kernels":3,"kernels_of":[)";
  f.op("");
  f.launch("gemm", 1);
  EXPECT_THAT(f.charged(), ElementsAre(1));
}

}  // namespace
}  // namespace joulediff::lab
