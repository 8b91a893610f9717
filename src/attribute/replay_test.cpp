#include "attribute/replay.h"

#include <cmath>

#include <gtest/gtest.h>

#include "attribute/caches.h"
#include "attribute/simulated_board.h"

namespace joulediff::attribute {
namespace {

constexpr double kStatic = 130;
constexpr Nanoseconds kEach = 1 * kMillisecond;

// Replays of one operator that draws `watts` above static power for a millisecond, at clocks that
// go with the way in which it is replayed.
struct Bench {
  run::Run run;
  run::Block block;
  SimulatedBoard board{kStatic, 3};
  Nanoseconds now = kSecond;

  Bench() { run.signatures.push_back({"mm"}); }

  // Executions for so long; where `idle` is not 0, in bursts of 10 ms with pauses of about that.
  void replay(double watts, double clock, Nanoseconds length, Nanoseconds idle = 0,
              run::ReplayKind kind = run::ReplayKind::op) {
    const Nanoseconds stop = now + length;
    const Nanoseconds burst = idle > 0 ? 10 * kMillisecond : 250 * kMillisecond;
    while (now < stop) {
      const Nanoseconds begin = now;
      std::uint64_t count = 0;
      for (; now < begin + burst; now += kEach, ++count) board.draw(now, now + kEach, watts);
      block.replays.push_back({kind, run::SignatureId(0), begin, now, count});
      now += idle > 0 ? idle + board.jitter(idle / 3) : kMillisecond;
    }
    for (Nanoseconds t = stop - length; t < stop; t += 50 * kMillisecond) {
      clock_.time.push_back(t);
      clock_.value.push_back(static_cast<std::int64_t>(clock));
    }
    now += 100 * kMillisecond;
  }
  Replayed replayed(std::optional<double> program_clock) {
    block.end = now + kSecond;
    block.series = board.sense(block.end);
    block.series.push_back(clock_);
    run.blocks = {block};
    return attribute::replayed(run, run.blocks[0], *meter::choose_meter(run), program_clock);
  }

 private:
  run::Series clock_{run::Source::nvml_sm_clock, {}, {}, {}};
};

double dynamic(const Execution& one) {
  return (one.energy.joules - Watts(kStatic) * one.whole()).value;
}

TEST(Replay, PausesBetweenBurstsAreTakenOut) {
  Bench bench;
  bench.replay(400, 1980, 3 * kSecond, 15 * kMillisecond);
  const auto all = bench.replayed(1980);
  const Execution& one = all.by_signature[0].value();
  EXPECT_NEAR(one.seconds.value, 1e-3, 1e-6);
  EXPECT_NEAR(one.pause.value, 1.5e-3, 0.1e-3);
  EXPECT_NEAR(dynamic(one), 0.4, 0.02 * 0.4);
}

// Back to back at a limit that the program does not meet, then in bursts at the program's clock.
TEST(Replay, TheWindowsAtTheProgramsClockCount) {
  Bench bench;
  bench.replay(420, 1500, 1500 * kMillisecond);
  bench.replay(560, 1980, 3 * kSecond, 10 * kMillisecond);
  const auto paced = bench.replayed(1975), tight = bench.replayed(1500);
  const auto any = bench.replayed(std::nullopt);
  EXPECT_NEAR(dynamic(*paced.by_signature[0]), 0.56, 0.02 * 0.56);
  EXPECT_NEAR(dynamic(*tight.by_signature[0]), 0.42, 0.02 * 0.42);
  EXPECT_GT(dynamic(*any.by_signature[0]), 0.45) << "without a clock nothing is left out";
  EXPECT_LT(dynamic(*any.by_signature[0]), 0.55);
  EXPECT_EQ(paced.by_signature[0]->readings.size(), 1u);
  EXPECT_GT(paced.by_signature[0]->parts.size(), tight.by_signature[0]->readings.size() + 6)
      << "parts of both windows tell how energy goes with the clock";
}

TEST(Replay, ColdExecutionsAreApart) {
  Bench bench;
  bench.replay(400, 1980, 2 * kSecond);
  bench.replay(460, 1980, 2 * kSecond, 0, run::ReplayKind::cold);
  const auto all = bench.replayed(1980);
  EXPECT_NEAR(dynamic(*all.by_signature[0]), 0.4, 0.01);
  EXPECT_NEAR(dynamic(*all.cold[0]), 0.46, 0.01);
  EXPECT_EQ(all.refused, 0u);
}

// A step of two operators on inputs of so many megabytes; the second's input was made by the first.
Caches caches(std::int64_t weights, std::int64_t activations, bool tensors = true) {
  run::Run run;
  const auto tensor = [&](std::int64_t megabytes) {
    run::Tensor made;
    made.storage = run.tensors.size();
    made.shape = {megabytes * 1'000'000};
    made.stride = {1};
    made.fingerprint.dtype = value::DType::int8;
    run.tensors.push_back(made);
    return run::TensorId(run.tensors.size() - 1);
  };
  for (int i = 0; i < 2; ++i) {
    run::Operator op;
    if (tensors) {
      op.inputs = {i == 0 ? tensor(weights) : run.operators[0].outputs[0]};
      op.outputs = {tensor(activations)};
    }
    run.operators.push_back(op);
  }
  return Caches(run);
}

TEST(Cold, CountsWhereReuseDistanceDecides) {
  const auto fits = caches(4, 2).between(run::OperatorId(0), {0.1, 0.01});
  EXPECT_EQ(fits.joules, 0);
  EXPECT_EQ(fits.half_width, 0);
  run::Run large;  // weights of 10 MB each, 20 of them: 220 MB until they come again
  for (std::size_t i = 0; i < 20; ++i) {
    run::Tensor weights;
    weights.storage = i;
    weights.shape = {10'000'000};
    weights.stride = {1};
    weights.fingerprint.dtype = value::DType::int8;
    large.tensors.push_back(weights);
    large.operators.emplace_back();
    large.operators.back().inputs = {run::TensorId(i)};
  }
  const auto cold = Caches(large).between(run::OperatorId(3), {0.1, 0.01});
  EXPECT_NEAR(cold.joules, 0.1, 1e-12);
  EXPECT_NEAR(cold.half_width, 0.01, 1e-12);
}

TEST(Cold, TheIntervalSpansBothWhereItDoesNot) {
  const auto unknown = caches(1, 1, false).between(run::OperatorId(0), {0.1, 0.01});
  EXPECT_NEAR(unknown.joules, 0.05, 1e-12);
  EXPECT_GE(unknown.half_width, 0.05);
  // 60 MB until the weights come again: about what the cache holds.
  const auto near = caches(30, 15).between(run::OperatorId(0), {0.1, 0.01});
  EXPECT_LE(near.joules - near.half_width, 0);
  EXPECT_GE(near.joules + near.half_width, 0.1);
}

}  // namespace
}  // namespace joulediff::attribute
