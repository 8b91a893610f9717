#include "simulate/recording.h"

#include <numeric>

#include <gtest/gtest.h>

#include "run/run_file.h"
#include "simulate/boards.h"
#include "simulate/random_program.h"

namespace joulediff::simulate {
namespace {

Draw small(std::uint64_t seed, bool strange) {
  Draw one = draw(seed, strange);
  one.program.seconds = 0.5;
  one.passes = {2, 0.3, 0.3, 0.3, 0.95, 2e-6};
  return one;
}

Recording record(const Draw& one) {
  return record(one.program, one.board, one.sensors, one.passes, one.seed);
}

double near(double value) {
  return 1e-6 * (1 + std::abs(value));
}

// A recording takes longer than what rapidcheck usually tries a hundred times.
class Recorded : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Recorded, testing::Range(0, 12));

TEST_P(Recorded, TheTruthsLinesSumToItsTotal) {
  const Draw one = small(static_cast<std::uint64_t>(GetParam()), GetParam() % 2 == 1);
  ASSERT_TRUE(check(one.program));
  const Recording recording = record(one);
  const Truth& truth = recording.truth;
  double lines = truth.held_back, dynamic = 0, total = 0;
  for (const double line : truth.lines) lines += line;
  for (const OperatorTruth& op : truth.operators) {
    dynamic += op.dynamic;
    total += op.total;
  }
  const auto line = [&](Line which) { return truth.lines[static_cast<std::size_t>(which)]; };
  EXPECT_NEAR(lines, truth.total, near(truth.total));
  EXPECT_NEAR(dynamic, line(Line::operators), near(truth.total));
  EXPECT_NEAR(total - dynamic, line(Line::static_busy) + line(Line::waiting), near(truth.total));
  // What the capacitors hold is their time constant times the power, no more.
  EXPECT_LE(std::abs(truth.held_back) * static_cast<double>(truth.steps),
            one.board.ramp * 3 * one.board.cap_watts);
}

TEST_P(Recorded, IsARunThatEveryStageMayRelyOn) {
  const Draw one = small(static_cast<std::uint64_t>(GetParam()), GetParam() % 2 == 1);
  const Recording recording = record(one);
  const Status valid = run::validate(recording.run);
  ASSERT_TRUE(valid) << valid.error().message;
  const run::KernelSeries& trace = recording.run.blocks[0].trace_kernels;
  std::vector<double> seconds(one.program.operators.size());
  for (std::size_t i = 0; i < trace.size(); ++i)
    for (std::size_t op = 0; op < seconds.size(); ++op)
      if (recording.run.kernels[trace.kernel[i].index()].name.starts_with(
              one.program.operators[op].name + "_kernel"))
        seconds[op] += to_seconds(trace.duration[i]).value;
  for (std::size_t op = 0; op < seconds.size(); ++op)
    EXPECT_NEAR(seconds[op] / static_cast<double>(recording.truth.steps),
                recording.truth.operators[op].seconds, 1e-9);
}

TEST(Recording, ASeedGivesTheSameBytes) {
  for (const bool strange : {false, true}) {
    const auto bytes = run::write_run_bytes(record(small(7, strange)).run);
    const auto again = run::write_run_bytes(record(small(7, strange)).run);
    const auto other = run::write_run_bytes(record(small(8, strange)).run);
    ASSERT_TRUE(bytes && again && other) << bytes.error().message;
    EXPECT_EQ(*bytes, *again);
    EXPECT_NE(*bytes, *other);
    EXPECT_EQ(truth_json(record(small(7, strange)).truth),
              truth_json(record(small(7, strange)).truth));
  }
}

TEST(Recording, ACounterThatIsPerfectReadsEveryWindow) {
  Draw one = draw(11, false);
  one.program.seconds = 3;
  one.passes.replay = 1;
  one.sensors.counter->jitter = 0;
  one.sensors.counter->read_median = 1e-6;
  one.sensors.counter->read_longest = 1e-6;
  const Recording recording = record(one);
  const run::Series& counter = recording.run.blocks[0].series[0];
  ASSERT_EQ(counter.source, run::Source::nvml_energy);
  for (const WindowTruth& window : recording.truth.windows) {
    const auto from = std::ranges::lower_bound(counter.time, window.begin) - counter.time.begin();
    const auto to = std::ranges::upper_bound(counter.time, window.end) - counter.time.begin() - 1;
    const auto i = static_cast<std::size_t>(from), j = static_cast<std::size_t>(to);
    const double read = 1e-3 * static_cast<double>(counter.value[j] - counter.value[i]);
    const double drawn = recording.history.waveform.joules(counter.time[i], counter.time[j],
                                                           {recording.history.ramp, 0});
    EXPECT_NEAR(read, drawn, 2e-3 * drawn + 2e-3) << window.name;
  }
}

TEST(Recording, ReplaysWhatTakesTheTime) {
  Program program;
  program.operators = {{"long", 3e-3, 1}, {"short", 20e-6, 1e-3}, {"middle", 1e-3, 0.3}};
  program.seconds = 1;
  const NamedBoard& h200 = *find_board("h200");
  const Recording recording = record(program, h200.board, h200.sensors, Passes{}, 1);
  ASSERT_EQ(recording.truth.operators.size(), 3u);
  EXPECT_TRUE(recording.truth.operators[0].replayed);
  EXPECT_FALSE(recording.truth.operators[1].replayed);
  EXPECT_TRUE(recording.truth.operators[2].replayed);
  EXPECT_NEAR(recording.truth.operators[0].dynamic, 1, 0.01);
  EXPECT_NEAR(recording.truth.operators[1].seconds, 20e-6, 1e-9);
}

TEST(Recording, ColdCachesCostInTheProgramAlone) {
  Program program;
  program.operators = {{"op", 1e-3, 0.3}};
  program.operators[0].cold = 0.2;
  program.seconds = 1;
  const NamedBoard& h200 = *find_board("h200");
  const Recording recording = record(program, h200.board, h200.sensors, Passes{}, 1);
  EXPECT_NEAR(recording.truth.operators[0].dynamic, 0.36, 1e-6);
  const WindowTruth& replay = recording.truth.windows.back();
  ASSERT_EQ(replay.name, "replay of op");
  const double watts = replay.joules / to_seconds(replay.end - replay.begin).value;
  EXPECT_NEAR(watts, 130 + 300, 10);
}

TEST(Program, WhatMakesNoSenseIsOneLine) {
  Program program = square_wave(0.02, 0.5, 400, 5);
  EXPECT_TRUE(check(program));
  EXPECT_TRUE(check(transformer(500, 5)));
  program.operators[0].joules = -1;
  EXPECT_EQ(check(program).error().message, "operator load: joules is not between 0 and 1e5");
  program = square_wave(0.02, 0.5, 400, 5000);
  EXPECT_EQ(check(program).error().message, "the program's seconds is not between 0.1 and 600");
  program = transformer(500, 5);
  program.operators[1].name = "layer_norm";
  EXPECT_NE(check(program).error().message.find("is there twice"), std::string::npos);
  program.operators.clear();
  EXPECT_FALSE(check(program));
}

TEST(Boards, EveryOneHasASourceAndPlays) {
  for (const NamedBoard& board : boards()) {
    EXPECT_FALSE(board.source.empty());
    EXPECT_LT(board.board.idle_watts, board.board.context_watts) << board.key;
    const Program program = square_wave(0.05, 0.5, 100, 0.5);
    const Recording recording =
        record(program, board.board, board.sensors, {1, 0, 0, 0, 0.95, 0}, 1);
    EXPECT_NEAR(recording.truth.step, 0.05, 1e-3) << board.key;
  }
  EXPECT_EQ(find_board("abacus"), nullptr);
}

}  // namespace
}  // namespace joulediff::simulate
