#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "attribute/attribute.h"
#include "attribute/test_program.h"

namespace joulediff::attribute {
namespace {

constexpr Nanoseconds kUs = 1'000;
constexpr Nanoseconds kMs = 1'000'000;
constexpr double kWatts = meter::kBusyCore.middle.value;

// An operator of a program on the CPU: how long it takes, on how many cores.
struct Work {
  const char* name;
  Nanoseconds duration;
  double cores;
  bool replayed;
  double joules() const { return 1e-9 * static_cast<double>(duration) * cores * kWatts; }
};

// A process whose processor time is known at each instant; the sampler looks about every 20 ms.
class Process {
 public:
  void work(Nanoseconds duration, double cores) {
    for (; next_ <= now_ + duration; next_ += 20 * kMs + 137) {
      cpu_.time.push_back(next_);
      cpu_.value.push_back(
          static_cast<std::int64_t>(used_ + cores * static_cast<double>(next_ - now_)));
      cpu_.uncertainty.push_back(50 * kUs);
    }
    now_ += duration;
    used_ += cores * static_cast<double>(duration);
  }
  Nanoseconds now() const { return now_; }
  run::Series series() const { return cpu_; }

 private:
  run::Series cpu_{run::Source::host_cpu, {}, {}, {}};
  Nanoseconds now_ = kMs;
  Nanoseconds next_ = kMs;
  double used_ = 0;
};

const std::vector<Work> kProgram = {{"addmm", 900 * kUs, 2, true},
                                    {"gelu", 1700 * kUs, 1, true},
                                    {"norm", 400 * kUs, 1.5, true},
                                    {"add", 120 * kUs, 1, false}};
constexpr Nanoseconds kBetween = 30 * kUs;  // the interpreter, one core

run::Run record(const std::vector<Work>& program) {
  run::Run run;
  run::Block block;
  Process process;
  const auto step = [&](run::Pass pass, std::uint32_t index) {
    const Nanoseconds begin = process.now();
    for (std::size_t i = 0; i < program.size(); ++i) {
      const Nanoseconds start = process.now();
      process.work(program[i].duration, program[i].cores);
      if (pass == run::Pass::order) {
        block.operator_times.op.push_back(run::OperatorId(i));
        block.operator_times.step.push_back(index);
        block.operator_times.begin.push_back(start);
        block.operator_times.end.push_back(process.now());
      }
      process.work(kBetween, 1);
    }
    block.steps.push_back({pass, index, begin, process.now()});
  };
  for (std::size_t i = 0; i < program.size(); ++i) {
    run::Operator op;
    op.name = program[i].name;
    op.signature = run::SignatureId(i);
    run.operators.push_back(op);
    run.signatures.push_back({program[i].name});
  }
  for (std::uint32_t i = 0; i < 30; ++i) step(run::Pass::order, i);
  for (std::uint32_t i = 0; i < 400; ++i) step(run::Pass::trace, i);
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (!program[i].replayed) continue;
    const Nanoseconds begin = process.now();
    for (int count = 0; count < 800; ++count) process.work(program[i].duration, program[i].cores);
    block.replays.push_back({run::ReplayKind::op, run::SignatureId(i), begin, process.now(), 800});
  }
  block.end = process.now();
  block.series.push_back(process.series());
  run.blocks.push_back(block);
  return run;
}

TEST(Host, ReplayedOperatorsAndTheRestOfTheStep) {
  const auto result = attribute(record(kProgram));
  ASSERT_TRUE(result) << result.error().message;
  double total = 1e-9 * kBetween * kWatts * static_cast<double>(kProgram.size());
  for (std::size_t i = 0; i < kProgram.size(); ++i) {
    const OperatorCost& cost = result->operators[i];
    const double truth = kProgram[i].joules();
    total += truth;
    ASSERT_TRUE(cost.known);
    EXPECT_LE(cost.dynamic.low.value, truth) << kProgram[i].name;
    EXPECT_GE(cost.dynamic.high.value, truth) << kProgram[i].name;
    EXPECT_EQ(cost.dynamic.standing, Standing::modelled);
    EXPECT_NEAR(cost.seconds.value, 1e-9 * static_cast<double>(kProgram[i].duration), 1e-9);
    if (kProgram[i].replayed) {
      EXPECT_LT(cost.dynamic.half_width().value, 0.01 * truth) << kProgram[i].name;
    }
  }
  const Ledger& ledger = result->ledger;
  EXPECT_EQ(ledger.boundary, Boundary::host);
  EXPECT_NEAR(ledger.total.joules.value, total, 0.005 * total);
  for (const Line which :
       {Line::static_busy, Line::launch_gap, Line::waiting, Line::idle, Line::overlap})
    EXPECT_FALSE(ledger.line(which)) << name(which) << ": the model cannot see it";
  // What the interpreter did between the operators stays in the last line.
  EXPECT_NEAR(line(ledger, Line::unattributed).joules.value, 4e-9 * kBetween * kWatts,
              line(ledger, Line::unattributed).half_width().value);
  EXPECT_NEAR(sum_of_lines(ledger), ledger.total.joules.value, 1e-9 * ledger.total.joules.value);
}

TEST(Host, WithoutReplayOperatorsAreEstimatedFromTheOrderPass) {
  run::Run run = record(kProgram);
  run.blocks[0].replays.clear();
  const auto result = attribute(run);
  ASSERT_TRUE(result);
  for (std::size_t i = 0; i < kProgram.size(); ++i) {
    ASSERT_TRUE(result->operators[i].known);
    EXPECT_LE(result->operators[i].dynamic.low.value, kProgram[i].joules());
    EXPECT_GE(result->operators[i].dynamic.high.value, kProgram[i].joules());
  }
}

TEST(Host, WithoutReplayAndTimesOperatorsAreUnknown) {
  run::Run run = record(kProgram);
  run.blocks[0].replays.clear();
  run.blocks[0].operator_times = {};
  const auto result = attribute(run);
  ASSERT_TRUE(result);
  for (const OperatorCost& cost : result->operators) EXPECT_FALSE(cost.known);
  EXPECT_FALSE(result->ledger.line(Line::operators)) << "not 0 J";
  EXPECT_EQ(line(result->ledger, Line::unattributed).joules, result->ledger.total.joules);
}

TEST(Host, ALineThatOneBlockDoesNotKnowIsUnknownAndTheLinesStillSum) {
  run::Run run = record(kProgram);
  run.blocks.push_back(run.blocks[0]);
  run.blocks[1].order = 1;
  run.blocks[1].replays.clear();
  run.blocks[1].operator_times = {};
  const auto result = attribute(run);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->blocks.size(), 2u);
  EXPECT_TRUE(result->blocks[0].ledger->line(Line::operators));
  EXPECT_FALSE(result->ledger.line(Line::operators));
  EXPECT_NEAR(sum_of_lines(result->ledger), result->ledger.total.joules.value, 1e-9);
}

// A package's counter sees the host's static power, where a floor was recorded.
TEST(Host, APackageCounterKnowsStaticPowerOnlyFromItsFloor) {
  run::Run run = record(kProgram);
  run::Block& block = run.blocks[0];
  constexpr double kStatic = 40;
  const Nanoseconds floor = block.end, end = floor + 2000 * kMs;
  run::Series package{run::Source::rapl_package, {}, {}, {}};
  const run::Series& cpu = block.series[0];
  const auto add = [&](Nanoseconds time, std::int64_t processor_time) {
    const double watts =
        1e-3 * (kStatic * static_cast<double>(time) + kWatts * static_cast<double>(processor_time));
    package.time.push_back(time);
    package.value.push_back(1'000'000 + static_cast<std::int64_t>(watts));
    package.uncertainty.push_back(50 * kUs);
  };
  for (std::size_t i = 0; i < cpu.time.size(); ++i) add(cpu.time[i], cpu.value[i]);
  for (Nanoseconds t = cpu.time.back() + 20 * kMs; t < end; t += 20 * kMs) add(t, cpu.value.back());
  block.series = {package};
  const auto without = attribute(run);
  block.replays.push_back({run::ReplayKind::idle, {}, floor, end, 1});
  const auto with = attribute(run);
  ASSERT_TRUE(without && with);
  EXPECT_FALSE(without->ledger.line(Line::static_busy)) << "not 0 J";
  const Ledger& ledger = with->ledger;
  const double truth = kStatic * ledger.step_time.value;
  EXPECT_NEAR(line(ledger, Line::static_busy).joules.value, truth, 0.01 * truth);
  EXPECT_FALSE(ledger.line(Line::idle)) << "a pause's static power is in that of the step";
  EXPECT_NEAR(sum_of_lines(ledger), ledger.total.joules.value, 1e-9);
}

TEST(Host, TimeInsideACallIsCountedOnce) {
  run::Run run = record(kProgram);
  run.blocks[0].replays.clear();
  run::OperatorTimes times;  // operator 0 calls operator 1
  for (const auto& [op, begin, end] :
       {std::tuple(0, 0 * kMs, 10 * kMs), std::tuple(1, 2 * kMs, 8 * kMs)}) {
    times.op.push_back(run::OperatorId(static_cast<std::size_t>(op)));
    times.step.push_back(0);
    times.begin.push_back(begin);
    times.end.push_back(end);
  }
  run.blocks[0].operator_times = times;
  const auto result = attribute(run);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->operators[0].seconds.value, 0.004, 1e-12);
  EXPECT_NEAR(result->operators[1].seconds.value, 0.006, 1e-12);
}

TEST(Host, ADeviceWithoutACounterIsToldNotZero) {  // pre-Volta boards, virtual GPUs
  run::Run run = record(kProgram);
  run.kernels.push_back({"gemm", {1, 1, 1}, {32, 1, 1}, {}});
  run::KernelSeries& trace = run.blocks[0].trace_kernels;
  trace.kernel.push_back(run::KernelId(0));
  trace.start.push_back(kMs);
  trace.duration.push_back(kMs);
  trace.stream.push_back(7);
  trace.op.emplace_back();
  trace.step.push_back(0);
  const auto result = attribute(run);
  ASSERT_TRUE(result);
  EXPECT_TRUE(std::ranges::any_of(result->diagnostics, [](const Diagnostic& d) {
    return d.rule == "attribute.no_board_meter";
  }));
}

TEST(Host, ARunWithoutStepsIsRefused) {
  run::Run run = record(kProgram);
  run.blocks[0].steps.clear();
  EXPECT_FALSE(attribute(run));
  run.blocks.clear();
  EXPECT_FALSE(attribute(run));
}

}  // namespace
}  // namespace joulediff::attribute
