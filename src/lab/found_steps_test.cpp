#include "lab/found_steps.h"

#include <joulediff/record.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/pack.h"
#include "run/run_file.h"

namespace joulediff::lab {
namespace {

using testing::HasSubstr;

// A program of a warm-up and `steps` equal steps of four kernels, the first of each behind a pause.
SpoolContents program(std::size_t steps, std::size_t order_kernels) {
  SpoolContents spool;
  spool.pid = 7;
  spool.kernel_names = {{1, "gemm"}, {2, "relu"}, {3, "softmax"}, {4, "fill"}};
  std::uint64_t time = 1000;
  const auto add = [&](std::uint32_t name, std::uint64_t pause) {
    time += pause;
    const bool in_order = spool.kernels.size() < order_kernels;
    const auto number = static_cast<std::uint32_t>(spool.kernels.size());
    spool.kernels.push_back({time,
                             time + 50,
                             name,
                             number + 100,
                             in_order ? JD_ORDER : JD_TRACE,
                             7,
                             {name, 1, 1},
                             {32, 1, 1},
                             0,
                             0});
    time += 50;
  };
  for (int i = 0; i < 9; ++i) add(4, 10);
  for (std::size_t i = 0; i < steps; ++i) {
    add(1, 500);
    add(2, 10);
    add(1, 10);
    add(3, 10);
  }
  return spool;
}

Result<run::Run> packed(SpoolContents spool) {
  Recorded recorded;
  recorded.launched.end = 1'000'000'000;
  recorded.spools = {std::move(spool)};
  run::Run run;
  run.manifest.label = "program";
  JD_TRY(add_launch(run, std::move(recorded)));
  JD_TRY(run::validate(run));
  return run;
}

std::size_t steps_of(const run::Run& run, run::Pass pass) {
  return static_cast<std::size_t>(std::ranges::count(run.blocks[0].steps, pass, &run::Step::pass));
}

TEST(FoundSteps, AProgramThatNobodyAttends) {
  const Result<run::Run> run = packed(program(60, 9 + 40));
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->operators.size(), 4u);
  EXPECT_EQ(run->operators[1].name, "kernel.relu");
  EXPECT_EQ(steps_of(*run, run::Pass::order), 3u);
  EXPECT_GE(steps_of(*run, run::Pass::trace), 48u);
  const run::KernelSeries& order = run->blocks[0].order_kernels;
  ASSERT_EQ(order.size(), 12u);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order.op[i], run::OperatorId(i % 4));
  EXPECT_EQ(run->blocks[0].trace_kernels.size(), 4 * steps_of(*run, run::Pass::trace));
  EXPECT_THAT(run->diagnostics.back().message, HasSubstr("4 kernels"));
}

// A recorder that had no stretch with operators: the first steps of the trace stand for it.
TEST(FoundSteps, WithoutAnOrderStretch) {
  const Result<run::Run> run = packed(program(60, 0));
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->operators.size(), 4u);
  EXPECT_EQ(steps_of(*run, run::Pass::order), 3u);
  EXPECT_GE(steps_of(*run, run::Pass::trace), 55u);
}

TEST(FoundSteps, WhatDoesNotRepeatIsOneStep) {
  const Result<run::Run> run = packed(program(1, 0));
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->operators.size(), 4u);  // each distinct kernel
  EXPECT_EQ(steps_of(*run, run::Pass::trace), 1u);
  EXPECT_EQ(run->blocks[0].trace_kernels.size(), 13u);
  EXPECT_THAT(run->diagnostics.back().message, HasSubstr("do not repeat"));
}

TEST(FoundSteps, StacksBecomeThoseOfTheOperators) {
  SpoolContents spool = program(60, 9 + 40);
  spool.native_stacks = {{1, {0x1001}}, {2, {0x1101}}};
  spool.modules = {{0x1000, 0x2000, 0, "/nowhere/engine", ""}};
  for (const spool::Kernel& kernel : spool.kernels)
    if (kernel.pass == JD_ORDER)
      spool.launch_stacks.push_back({kernel.correlation, kernel.name == 3 ? 2u : 1u});
  const Result<run::Run> run = packed(std::move(spool));
  ASSERT_TRUE(run) << run.error().message;
  const auto function = [&](std::size_t op) {
    return run->frames[run->stacks[run->operators[op].stack.index()].frame.index()].function;
  };
  EXPECT_EQ(function(0), "+0x0");
  EXPECT_EQ(function(3), "+0x100");
}

TEST(FoundSteps, MarkedStepsStay) {
  SpoolContents spool = program(60, 0);
  spool.steps.push_back({JD_TRACE, 1, 1000, 2000, 0, 0});
  EXPECT_FALSE(with_found_steps(spool));
  EXPECT_FALSE(with_found_steps(SpoolContents()));
}

}  // namespace
}  // namespace joulediff::lab
