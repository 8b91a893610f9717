#include "attribute/ledger.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "attribute/test_program.h"

namespace joulediff::attribute {
namespace {

// Nothing was replayed: the operators are fitted to the trace, and it is said.
TEST(Ledger, WithoutReplayTheOperatorsAreEstimated) {
  Program program = transformer();
  Recording recording = Player(program).play();
  const auto measured = attribute(recording.run);
  recording.run.blocks[0].replays.erase(
      std::remove_if(recording.run.blocks[0].replays.begin(), recording.run.blocks[0].replays.end(),
                     [](const run::Replay& r) { return r.kind == run::ReplayKind::op; }),
      recording.run.blocks[0].replays.end());
  const auto result = attribute(recording.run);
  ASSERT_TRUE(measured && result);
  EXPECT_TRUE(says(result->diagnostics, "attribute.fitted"));
  const Energy operators = line(result->ledger, Line::operators);
  EXPECT_GE(operators.standing, Standing::estimated);
  const double truth = line(measured->ledger, Line::operators).joules.value;
  EXPECT_NEAR(operators.joules.value, truth, 0.02 * truth);
  std::size_t holds = 0;
  for (std::size_t i = 0; i < program.loads.size(); ++i) {
    const OperatorCost& cost = result->operators[i];
    EXPECT_TRUE(cost.known);
    const double joules = program.loads[i].joules();
    if (joules > 0) {
      EXPECT_GE(cost.dynamic.standing, Standing::estimated) << program.loads[i].name;
    }
    holds += cost.dynamic.low.value <= joules && joules <= cost.dynamic.high.value;
  }
  EXPECT_GE(holds, 0.9 * static_cast<double>(program.loads.size()));
  EXPECT_NEAR(sum_of_lines(result->ledger), result->ledger.total.joules.value, 1e-9);
}

// Without an order pass nobody knows of a kernel which operator it is of.
TEST(Ledger, WithoutOneKnownOperatorTheirLineIsUnknownNotZero) {
  Recording recording = Player(transformer()).play();
  recording.run.blocks[0].replays.clear();
  recording.run.blocks[0].order_kernels = {};
  const auto result = attribute(recording.run);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->ledger.line(Line::operators)) << "views are known, and cost nothing";
  EXPECT_NEAR(sum_of_lines(result->ledger), result->ledger.total.joules.value, 1e-9);
}

// A program that pauses now and then: the gap's two blocks differ by more than their mean.
TEST(Ledger, WhatCannotBeNegativeHasNoNegativeInterval) {
  Program program = transformer();
  run::Run run = Player(program).play().run;
  program.gap = 100 * kMicrosecond;
  program.loads.resize(27);
  run.blocks.push_back(Player(program).play().run.blocks[0]);
  run.blocks[1].order = 1;
  const auto result = attribute(run);
  ASSERT_TRUE(result);
  const Ledger& ledger = result->ledger;
  const Energy gap = line(ledger, Line::launch_gap);
  EXPECT_EQ(gap.low, Joules(0));
  EXPECT_GT(gap.high.value, 2 * gap.joules.value);
  for (const Line which : {Line::operators, Line::static_busy, Line::waiting, Line::idle})
    EXPECT_GE(line(ledger, which).low, Joules(0)) << name(which);
  EXPECT_LT(line(ledger, Line::unattributed).low, Joules(0)) << "signed";
}

// The host beside a board: the same board ledger, and one of the host's own with no line made up.
TEST(Ledger, TheHostIsALedgerOfItsOwn) {
  const Program program = transformer();
  Recording recording = Player(program).play();
  const auto alone = attribute(recording.run);
  run::Block& block = recording.run.blocks[0];
  run::Series cpu{run::Source::host_cpu, {}, {}, {}};  // one core and a half
  for (Nanoseconds t = 0; t < block.end; t += 20 * kMillisecond) {
    cpu.time.push_back(t);
    cpu.value.push_back(t + t / 2);
  }
  block.series.push_back(cpu);
  const auto result = attribute(recording.run);
  ASSERT_TRUE(alone && result);
  EXPECT_TRUE(alone->beside.empty());
  EXPECT_EQ(result->meter.boundary, Boundary::board);
  for (std::size_t i = 0; i < kLines; ++i) {
    EXPECT_EQ(result->ledger.lines[i]->joules, alone->ledger.lines[i]->joules);
    EXPECT_EQ(result->ledger.lines[i]->low, alone->ledger.lines[i]->low);
  }
  EXPECT_EQ(result->per_work_unit.joules, alone->per_work_unit.joules);

  ASSERT_EQ(result->beside.size(), 1u);
  const Ledger& host = result->beside.front();
  double seconds = 0;
  for (const run::Step& one : block.steps) seconds += to_seconds(one.end - one.begin).value;
  seconds /= static_cast<double>(block.steps.size());
  const double truth = 1.5 * meter::kBusyCore.middle.value * seconds;
  EXPECT_EQ(host.boundary, Boundary::host);
  EXPECT_EQ(host.total.standing, Standing::modelled);
  EXPECT_NEAR(host.total.joules.value, truth, 0.005 * truth);
  EXPECT_EQ(line(host, Line::unattributed).joules, host.total.joules);
  EXPECT_EQ(std::ranges::count_if(host.lines, [](const auto& known) { return !known; }), 6)
      << "nothing but the rest is known";
  EXPECT_FALSE(host.busy_time);
}

TEST(Ledger, ABlockWithoutProcessorTimeLeavesTheHostsOfTheOthers) {
  const Program program = transformer();
  Recording recording = Player(program).play();
  recording.run.blocks.push_back(recording.run.blocks[0]);
  run::Block& block = recording.run.blocks[1];
  block.order = 1;
  run::Series cpu{run::Source::host_cpu, {}, {}, {}};
  for (Nanoseconds t = 0; t < block.end; t += 20 * kMillisecond) {
    cpu.time.push_back(t);
    cpu.value.push_back(t);
  }
  block.series.push_back(cpu);
  const auto result = attribute(recording.run);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->blocks.size(), 2u);
  ASSERT_EQ(result->beside.size(), 1u);
  EXPECT_NEAR((result->beside[0].total.joules / result->beside[0].step_time).value,
              meter::kBusyCore.middle.value, 1e-6);
  EXPECT_TRUE(says(result->diagnostics, "attribute.host_left_out"));
}

// Whatever a step was and whatever its operators cost: the lines sum to the total.
RC_GTEST_PROP(Ledger, LinesAlwaysSumToTheTotal, ()) {
  const auto number = [](double scale) {
    return scale * static_cast<double>(*rc::gen::inRange(0, 1'000'000)) * 1e-6;
  };
  StepView view;
  view.total = Energy::around(Joules(number(500)), Joules(number(5)), Standing::measured);
  for (std::optional<double>* seconds :
       {&view.busy, &view.waiting, &view.launch_gap, &view.idle, &view.overlapped})
    if (*rc::gen::arbitrary<bool>()) *seconds = number(1);
  std::vector<UnitCost> units(*rc::gen::inRange<std::size_t>(0, 20));
  for (UnitCost& unit : units) {
    unit = {
        *rc::gen::arbitrary<bool>(),          number(10) - 1,    number(1), number(1), number(1),
        *rc::gen::inRange<std::size_t>(0, 4), Standing::replayed};
    view.usage.push_back({number(3), number(1), number(1), number(1)});
  }
  const meter::StaticPower floor{Watts(number(200)), Watts(number(10)), "drawn"};
  const Ledger ledger = *costs(view, units, floor, {}).ledger;
  double scale = ledger.total.joules.value;
  for (const auto& energy : ledger.lines) {
    if (!energy) continue;
    scale += std::abs(energy->joules.value);
    RC_ASSERT(energy->low <= energy->joules && energy->joules <= energy->high);
  }
  RC_ASSERT(std::abs(sum_of_lines(ledger) - ledger.total.joules.value) <= 1e-9 * scale);
}

}  // namespace
}  // namespace joulediff::attribute
