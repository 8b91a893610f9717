// Several processes, devices and hosts: each joule once.
#include "attribute/launch.h"

#include <gmock/gmock.h>

#include "attribute/test_program.h"

namespace joulediff::attribute {
namespace {

constexpr auto kNear = [](double a, double b) { return std::abs(a - b) <= 1e-3 * std::abs(b); };

// What one process did, done by two: every other operator is the second rank's, which has neither
// series nor replays of its own.
run::Run split(const Recording& whole) {
  run::Run run = whole.run;
  run::Block second = run.blocks[0];
  second.rank = 1;
  second.series.clear();
  second.replays.clear();
  const auto keep = [&](run::KernelSeries& series, const std::vector<run::OperatorId>& op,
                        std::size_t rank) {
    run::KernelSeries kept;
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (op[i].index() % 2 != rank) continue;
      kept.kernel.push_back(series.kernel[i]);
      kept.start.push_back(series.start[i]);
      kept.duration.push_back(series.duration[i]);
      kept.stream.push_back(series.stream[i]);
      kept.op.push_back(series.op[i]);
      kept.step.push_back(series.step[i]);
    }
    series = std::move(kept);
  };
  const run::Block& block = whole.run.blocks[0];
  const Recognition truth = recognise(whole.run, block, step_templates(whole.run, block));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    run::Block& own = rank == 0 ? run.blocks[0] : second;
    keep(own.trace_kernels, truth.op, rank);
    keep(own.order_kernels, block.order_kernels.op, rank);
  }
  run.blocks.push_back(second);
  return run;
}

TEST(Launch, RanksThatShareADeviceAreCountedOnce) {
  const Recording recording = Player(transformer()).play();
  const auto whole = attribute(recording.run);
  const auto shared = attribute(split(recording));
  ASSERT_TRUE(whole && shared) << shared.error().message;
  ASSERT_EQ(shared->blocks.size(), 1u);
  EXPECT_EQ(shared->recognised, 1);
  EXPECT_PRED2(kNear, shared->ledger.total.joules.value, whole->ledger.total.joules.value);
  EXPECT_PRED2(kNear, shared->ledger.busy_time->value, whole->ledger.busy_time->value);
  EXPECT_PRED2(kNear, line(shared->ledger, Line::static_busy).joules.value,
               line(whole->ledger, Line::static_busy).joules.value);
  for (std::size_t i = 0; i < whole->operators.size(); ++i) {
    ASSERT_TRUE(shared->operators[i].known) << i;
    EXPECT_NEAR(shared->operators[i].total.joules.value, whole->operators[i].total.joules.value,
                1e-3 * whole->operators.back().total.joules.value)
        << i;
  }
}

TEST(Launch, WorkIsThatOfAllRanks) {
  run::Run run = split(Player(transformer()).play());
  run.manifest.work.per_step = 10;
  EXPECT_EQ(work_of_step(run), 20);
  const auto result = attribute(run);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->per_work_unit.joules.value, result->ledger.total.joules.value / 20, 1e-12);
  run.manifest.facts["work_is_global"] = "true";
  EXPECT_EQ(work_of_step(run), 10);
}

// Two ranks, each on a device of its own; the first block has the series of both.
run::Run two_devices() {
  run::Run run;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    Program program = transformer();
    program.seed = rank + 1;
    run::Run one = Player(program).play().run;
    run::Block block = one.blocks[0];
    if (rank == 0) run = one;
    run.devices.push_back({"GPU-" + std::to_string(rank), "simulated"});
    block.rank = rank;
    block.trace_kernels.device.assign(block.trace_kernels.size(), run::DeviceId(rank));
    block.order_kernels.device.assign(block.order_kernels.size(), run::DeviceId(rank));
    for (run::Series& series : block.series) series.channel = run.devices[rank].uuid;
    if (rank == 0) {
      run.blocks[0] = block;
      continue;
    }
    run.blocks[0].series.insert(run.blocks[0].series.end(), block.series.begin(),
                                block.series.end());
    block.series.clear();
    run.blocks.push_back(block);
  }
  return run;
}

TEST(Launch, EnergiesOfDevicesAdd) {
  const auto one = attribute(Player(transformer()).play().run);
  const auto both = attribute(two_devices());
  ASSERT_TRUE(one && both) << both.error().message;
  ASSERT_EQ(both->blocks.size(), 1u);
  const double total = one->ledger.total.joules.value;
  EXPECT_NEAR(both->ledger.total.joules.value, 2 * total, 0.02 * total);
  EXPECT_NEAR(both->ledger.step_time.value, one->ledger.step_time.value, 1e-4);
  EXPECT_NEAR(both->per_work_unit.joules.value, total, 0.01 * total);
  EXPECT_NEAR(sum_of_lines(both->ledger), both->ledger.total.joules.value, 1e-9 * total);
  EXPECT_NEAR(both->operators.back().dynamic.joules.value,
              2 * one->operators.back().dynamic.joules.value, 0.02 * total);
  EXPECT_FALSE(says(both->diagnostics, "attribute.several_boards"));
}

TEST(Launch, ADeviceWithoutASeriesIsUnknownAndTold) {
  run::Run run = two_devices();
  std::erase_if(run.blocks[0].series,
                [](const run::Series& series) { return series.channel == "GPU-1"; });
  const auto result = attribute(run);
  const auto one = attribute(Player(transformer()).play().run);
  ASSERT_TRUE(result && one);
  EXPECT_TRUE(says(result->diagnostics, "attribute.unmetered_device"));
  EXPECT_FALSE(result->operators.back().known) << "part of it ran where no meter saw it";
  EXPECT_NEAR(result->ledger.total.joules.value, one->ledger.total.joules.value,
              0.01 * one->ledger.total.joules.value);
}

// A host that only launches may be done with every step before the device is with its first.
TEST(Launch, StepsAreTheDevicesWhereTheHostIsFarAhead) {
  Recording recording = Player(transformer()).play();
  const auto beside = attribute(recording.run);
  Nanoseconds now = recording.trace_begin;
  for (run::Step& step : recording.run.blocks[0].steps) {
    step.begin = now;
    step.end = now += 10 * kMicrosecond;
  }
  const auto ahead = attribute(recording.run);
  ASSERT_TRUE(beside && ahead);
  EXPECT_EQ(ahead->ledger.total.joules, beside->ledger.total.joules);
  EXPECT_EQ(ahead->ledger.step_time, beside->ledger.step_time);
}

// Two rounds of a loop that a step has are one step, where the host says that there were half as
// many.
TEST(Launch, TheHostKnowsHowManyStepsThereWere) {
  Recording recording = Player(transformer()).play();
  const auto all = attribute(recording.run);
  std::vector<run::Step>& steps = recording.run.blocks[0].steps;
  steps.resize(steps.size() / 2);
  const auto half = attribute(recording.run);
  ASSERT_TRUE(all && half);
  EXPECT_PRED2(kNear, half->ledger.total.joules.value, 2 * all->ledger.total.joules.value);
}

TEST(Launch, TheHostsSeriesIsReadOncePerHost) {
  run::Run run;
  run::Block block;
  block.host = "left";
  for (std::uint32_t i = 0; i < 100; ++i)
    block.steps.push_back(
        {run::Pass::trace, i, i * 10 * kMillisecond, (i + 1) * 10 * kMillisecond, {}});
  run::Series cpu{run::Source::host_cpu, {}, {}, {}, {}};
  for (Nanoseconds t = 0; t <= kSecond; t += 20 * kMillisecond) {
    cpu.time.push_back(t);
    cpu.value.push_back(t);
  }
  block.series = {cpu};
  run.blocks = {block};
  const auto one = attribute(run);
  block.rank = 1;
  block.series.clear();
  run.blocks.push_back(block);
  const auto two = attribute(run);
  block.rank = 2;
  block.host = "right";
  block.series = {cpu};
  run.blocks.push_back(block);
  const auto three = attribute(run);
  ASSERT_TRUE(one && two && three);
  const double joules = one->ledger.total.joules.value;
  EXPECT_GT(joules, 0);
  EXPECT_NEAR(two->ledger.total.joules.value, joules, 1e-9);
  EXPECT_NEAR(three->ledger.total.joules.value, 2 * joules, 1e-9);
  EXPECT_NEAR(three->per_work_unit.joules.value, 2 * joules / 3, 1e-9);
}

}  // namespace
}  // namespace joulediff::attribute
