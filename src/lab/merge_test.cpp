#include "lab/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/clock.h"
#include "lab/pack.h"
#include "run/names.h"
#include "run/run_file.h"

namespace joulediff::lab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A rank of two operators, launched twice, on a board of its own or a shared one.
run::Run rank_of(std::uint32_t rank, const std::string& host, const std::string& board,
                 Nanoseconds origin = 0) {
  run::Run run;
  run.manifest.label = "train";
  run.manifest.framework = "torch 2.11.0";
  run.manifest.facts = {{"host", host},
                        {kBootFact, "boot of " + host},
                        {kWallClockFact, std::to_string(1'000'000 - origin)}};
  run.devices = {{board, "NVIDIA H200"}};
  run.frames = {{"train.py", 3 + rank, "main"}};
  run.stacks = {{{}, run::FrameId(0)}};
  run.signatures = {{"relu(f32)"}, {"add(f32)"}};
  if (rank == 1) std::swap(run.signatures[0], run.signatures[1]);
  run.inputs = {{"float32[" + std::to_string(8 + rank) + "]"}};
  for (const char* name : {"aten.relu", "aten.add"}) {
    run::Operator op;
    op.name = name;
    op.stack = run::StackId(0);
    run.operators.push_back(op);
  }
  run.kernels = {{"relu", {1, 1, 1}, {32, 1, 1}, run::KernelKind::kernel}};
  if (rank == 1) run.kernels.insert(run.kernels.begin(), {"own", {}, {}, run::KernelKind::kernel});
  for (std::uint32_t order = 0; order < 2; ++order) {
    run::Block& block = run.blocks.emplace_back();
    block.order = order;
    block.rank = rank;
    block.pid = 100 + rank;
    block.begin = origin + 10;
    block.end = origin + 90;
    block.steps = {{run::Pass::trace, 0, origin + 20, origin + 80, run::InputsId(0)}};
    block.trace_kernels = {{run::KernelId(rank)}, {origin + 30}, {5}, {7}, {run::OperatorId()}, {0},
                           {run::DeviceId(0)}};
    block.replays = {{run::ReplayKind::op, run::SignatureId(0), origin + 81, origin + 85, 3}};
    block.series = {{run::Source::nvml_energy, {origin + 20, origin + 80}, {5, 9}, {}, board},
                    {run::Source::host_cpu, {origin + 20}, {4}, {}, ""},
                    {run::Source::rapl_package, {origin + 20}, {4}, {}, "package-0"}};
  }
  return run;
}

run::Run merged(std::vector<run::Run> ranks) {
  const Result<run::Run> run = merge(std::move(ranks));
  EXPECT_TRUE(run) << run.error().message;
  EXPECT_TRUE(run::validate(*run)) << run::validate(*run).error().message;
  return *run;
}

std::vector<std::string> channels(const run::Block& block) {
  std::vector<std::string> all;
  for (const run::Series& series : block.series)
    all.push_back(std::string(run::name(series.source)) + " " + series.channel);
  return all;
}

TEST(Merge, RanksOfOneHostShareWhatTheyShare) {
  const run::Run run = merged({rank_of(0, "n1", "GPU-a"), rank_of(1, "n1", "GPU-b")});
  ASSERT_EQ(run.blocks.size(), 4u);
  EXPECT_EQ(run.blocks[1].order, 0u);
  EXPECT_EQ(run.blocks[1].rank, 1u);
  EXPECT_THAT(channels(run.blocks[0]),
              ElementsAre("nvml_energy GPU-a", "host_cpu rank 0", "rapl_package package-0",
                          "nvml_energy GPU-b", "host_cpu rank 1"));
  EXPECT_TRUE(run.blocks[1].series.empty());
  EXPECT_EQ(run.devices.size(), 2u);
  EXPECT_EQ(run.blocks[1].trace_kernels.device[0], run::DeviceId(1));
  EXPECT_EQ(run.operators.size(), 2u);
  // Signatures, kernels and inputs are those that they were.
  EXPECT_EQ(run.signatures[run.blocks[1].replays[0].signature.index()].text, "add(f32)");
  EXPECT_EQ(run.kernels[run.blocks[1].trace_kernels.kernel[0].index()].name, "relu");
  EXPECT_EQ(run.inputs[run.blocks[1].steps[0].inputs.index()].text, "float32[9]");
}

TEST(Merge, ASharedBoardIsCountedOnce) {
  const run::Run run = merged({rank_of(0, "n1", "GPU-a"), rank_of(1, "n1", "GPU-a")});
  EXPECT_THAT(channels(run.blocks[0]), ElementsAre("nvml_energy GPU-a", "host_cpu rank 0",
                                                   "rapl_package package-0", "host_cpu rank 1"));
  EXPECT_EQ(run.devices.size(), 1u);
}

// Each launch has a process tree of its own, and each is counted once, in whatever order the runs
// are merged.
TEST(Merge, WhatWasMergedMayBeMergedAgain) {
  const auto cpu_channels = [](const run::Run& run) {
    std::vector<std::string> all;
    for (const std::string& channel : channels(run.blocks[0]))
      if (channel.starts_with("host_cpu")) all.push_back(channel);
    return all;
  };
  const run::Run first = merged({rank_of(0, "n1", "GPU-a"), rank_of(1, "n1", "GPU-b")});
  run::Run third = rank_of(1, "n1", "GPU-c");
  for (run::Block& block : third.blocks) block.rank = 2, block.pid = 102;
  EXPECT_THAT(cpu_channels(merged({first, third})),
              ElementsAre("host_cpu rank 0", "host_cpu rank 1", "host_cpu rank 2"));
  EXPECT_THAT(
      cpu_channels(merged({third, first})),
      testing::UnorderedElementsAre("host_cpu rank 0", "host_cpu rank 1", "host_cpu rank 2"));
  run::Run second = first;  // numbered from 0 too
  for (run::Block& block : second.blocks) block.pid += 700;
  EXPECT_THAT(cpu_channels(merged({first, second})),
              testing::UnorderedElementsAre("host_cpu rank 0", "host_cpu rank 1", "host_cpu rank 2",
                                            "host_cpu rank 3"));
}

// torchrun starts several ranks, and one tree of processes is all of them.
TEST(Merge, AnAgentOfSeveralRanksIsCountedOnce) {
  const auto agent = [](std::uint32_t rank) {
    run::Run run = rank_of(0, "n1", "GPU-a");
    run.blocks.resize(1);
    run.blocks[0].rank = rank;
    run.blocks[0].pid = 100 + rank;
    run::Block other = run.blocks[0];
    other.rank = rank + 1;
    other.pid = 101 + rank;
    other.series.clear();
    run.blocks.push_back(other);
    return run;
  };
  const run::Run run = merged({agent(0), agent(2)});
  EXPECT_THAT(channels(run.blocks[0]), ElementsAre("nvml_energy GPU-a", "host_cpu rank 0",
                                                   "rapl_package package-0", "host_cpu rank 2"));
}

TEST(Merge, AnotherMachineComesOntoTheFirstsClock) {
  const run::Run run = merged({rank_of(0, "n1", "GPU-a"), rank_of(1, "n2", "GPU-b", 500'000)});
  const run::Block& other = run.blocks[1];
  EXPECT_EQ(other.host, "n2");
  EXPECT_EQ(other.steps[0].begin, 20);
  EXPECT_EQ(other.trace_kernels.start[0], 30);
  EXPECT_EQ(other.series[0].time[0], 20);  // its own meters, in its own first block
  EXPECT_EQ(other.series.size(), 3u);
  EXPECT_EQ(run.diagnostics.back().rule, "merge.clock");
}

TEST(Merge, PipelineStagesAddTheirOperators) {
  run::Run stage = rank_of(1, "n1", "GPU-b");
  stage.operators[0].name = "aten.mm";
  stage.operators[1].name = "aten.softmax";
  stage.blocks[0].operator_times = {{run::OperatorId(1)}, {0}, {40}, {50}};
  const run::Run run = merged({rank_of(0, "n1", "GPU-a"), stage});
  ASSERT_EQ(run.operators.size(), 4u);
  EXPECT_EQ(run.operators[3].name, "aten.softmax");
  EXPECT_EQ(run.blocks[1].operator_times.op[0], run::OperatorId(3));
  EXPECT_EQ(run.frames[run.stacks[run.operators[3].stack.index()].frame.index()].line, 4u);
}

TEST(Merge, RunsThatNobodyNumberedAreNumberedInTheirOrder) {
  run::Run second = rank_of(0, "n1", "GPU-b");
  for (run::Block& block : second.blocks) block.pid = 500;
  const run::Run run = merged({rank_of(0, "n1", "GPU-a"), second});
  EXPECT_EQ(run.blocks[0].rank, 0u);
  EXPECT_EQ(run.blocks[1].rank, 1u);
}

TEST(Merge, RefusesWhatAreNoRanks) {
  const auto error = [](std::vector<run::Run> ranks) {
    const Result<run::Run> run = merge(std::move(ranks));
    return run ? "merged" : run.error().message;
  };
  const run::Run first = rank_of(0, "n1", "GPU-a");
  EXPECT_THAT(error({first}), HasSubstr("two ranks"));
  EXPECT_THAT(error({first, first}), HasSubstr("run 2 was given before"));
  run::Run other = rank_of(1, "n1", "GPU-b");
  other.manifest.work.unit = "token";
  EXPECT_THAT(error({first, other}), HasSubstr("work unit"));
  other = rank_of(1, "n2", "GPU-b");
  other.manifest.facts.erase(kWallClockFact);
  EXPECT_THAT(error({first, other}), HasSubstr("wall time"));
  other = rank_of(1, "n1", "GPU-b");
  other.manifest.pair = "p";
  EXPECT_THAT(error({first, other}), HasSubstr("another pair"));
  other = rank_of(1, "n1", "GPU-b", 5 * kSecond);  // on the same machine's clock
  EXPECT_THAT(error({first, other}),
              AllOf(HasSubstr("not recorded at the same time"), HasSubstr("5.00 s after")));
}

}  // namespace
}  // namespace joulediff::lab
