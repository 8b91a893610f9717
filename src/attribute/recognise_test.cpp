// Programs whose truth is known: operators that launch kernels, in loops, on several streams, in
// steps of several shapes; the trace has other trip counts, other streams, and damage.
#include "attribute/recognise.h"

#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace joulediff::attribute {
namespace {

struct Options {
  std::size_t shapes = 1;
  std::size_t streams = 1;
  bool new_streams = false;  // other numbers in the trace, new ones in each step
  bool loops = false;
  bool unseen = false;  // the trace has shapes that the order pass has not
  bool marked = true;   // the steps' inputs are known
  bool sets = false;    // operators set memory, too, which the trace leaves out
  unsigned damage = 0;  // one kernel in so many is lost, one inserted
  std::size_t steps = 60;
};

class Maker {
 public:
  Maker(unsigned seed, const Options& options) : random_(seed), options_(options) {
    const std::size_t operators = 8 + below(30);
    for (std::size_t i = 0; i < operators; ++i) {
      Op op;
      const std::size_t kernels = 1 + below(3);
      for (std::size_t k = 0; k < kernels; ++k) op.kernels.push_back(below(24));
      op.shaped = below(3) != 0;
      op.stream = static_cast<std::uint32_t>(below(5) == 0 ? below(options_.streams) : 0);
      // What runs beside the rest is of its own kind: a copy, a collective.
      if (op.stream > 0)
        for (std::size_t& kernel : op.kernels) kernel = 100 * op.stream + kernel % 3;
      ops_.push_back(op);
      run_.operators.emplace_back();
    }
    if (options_.sets) {
      for (Op& op : ops_)
        if (below(3) == 0) op.kernels.insert(op.kernels.begin(), kSet + below(2));
      ops_.back().kernels = {kSet};  // and nothing else
    }
    loop_begin_ = below(operators / 2);
    loop_end_ = loop_begin_ + 2 + below(operators - loop_begin_ - 2);
    for (std::size_t shape = 0; shape <= options_.shapes; ++shape) {
      run_.inputs.push_back({"shape " + std::to_string(shape)});
      rounds_.push_back(2 + below(4));
    }
  }

  void play() {
    run::Block block;
    for (std::uint32_t i = 0; i < 3 * options_.shapes; ++i)
      step(block, run::Pass::order, i, i % options_.shapes);
    for (std::uint32_t i = 0; i < options_.steps; ++i)
      step(block, run::Pass::trace, i, below(options_.shapes + (options_.unseen ? 1 : 0)));
    run_.blocks.push_back(std::move(block));
  }

  const run::Run& run() const { return run_; }
  const std::vector<run::OperatorId>& truth() const { return truth_; }

 private:
  static constexpr std::size_t kSet = 5000;
  struct Op {
    std::vector<std::size_t> kernels;
    bool shaped = false;
    std::uint32_t stream = 0;
  };
  struct Execution {
    Nanoseconds start = 0;
    Nanoseconds duration = 0;
    run::KernelId kernel;
    std::uint32_t stream = 0;
    run::OperatorId op;
  };

  std::size_t below(std::size_t limit) { return random_() % limit; }

  run::KernelId kernel(std::size_t name, std::uint32_t grid) {
    const auto [found, fresh] = numbers_.try_emplace({name, grid}, run_.kernels.size());
    if (fresh)
      run_.kernels.push_back({"kernel_" + std::to_string(name),
                              {grid, 1, 1},
                              {32, 1, 1},
                              name >= kSet ? run::KernelKind::set : run::KernelKind::kernel});
    return run::KernelId(found->second);
  }

  void step(run::Block& block, run::Pass pass, std::uint32_t index, std::size_t shape) {
    const bool trace = pass == run::Pass::trace;
    const std::size_t rounds =
        options_.loops ? rounds_[shape] + (trace ? below(4) : 0) - (trace ? 1 : 0) : 1;
    std::vector<Execution> done;
    std::vector<Nanoseconds> free(options_.streams, now_);
    Nanoseconds launched = now_;
    const auto call = [&](std::size_t i) {
      const Op& op = ops_[i];
      for (const std::size_t name : op.kernels) {
        if (trace && name >= kSet) continue;
        launched += 500 + static_cast<Nanoseconds>(below(1000));
        Nanoseconds& clock = free[op.stream];
        const auto duration = static_cast<Nanoseconds>(2000 + 300 * (name % 7) + below(300));
        const Nanoseconds start = std::max(clock + 1, launched);
        clock = start + duration;
        if (trace && damaged()) continue;
        done.push_back({start, duration,
                        kernel(name, op.shaped ? 10 + static_cast<std::uint32_t>(shape) : 1),
                        op.stream, run::OperatorId(i)});
        if (!trace || !damaged()) continue;
        done.push_back({clock + 1, 300, kernel(1000, 1), op.stream, run::OperatorId()});
        clock += 302;
      }
    };
    for (std::size_t i = 0; i < loop_begin_; ++i) call(i);
    for (std::size_t round = 0; round < rounds; ++round)
      for (std::size_t i = loop_begin_; i < loop_end_; ++i) call(i);
    for (std::size_t i = loop_end_; i < ops_.size(); ++i) call(i);

    std::ranges::stable_sort(done, {}, &Execution::start);
    run::KernelSeries& series = trace ? block.trace_kernels : block.order_kernels;
    for (const Execution& one : done) {
      series.kernel.push_back(one.kernel);
      series.start.push_back(one.start);
      series.duration.push_back(one.duration);
      series.stream.push_back(stream(one.stream, trace, index));
      series.op.push_back(trace ? run::OperatorId() : one.op);
      series.step.push_back(trace ? 0 : index);
      if (trace) truth_.push_back(one.op);
    }
    const Nanoseconds end = std::max(launched, std::ranges::max(free)) + 5000;
    block.steps.push_back(
        {pass, index, now_, end, options_.marked ? run::InputsId(shape) : run::InputsId()});
    now_ = end + 1000;
  }

  std::uint32_t stream(std::uint32_t role, bool trace, std::uint32_t step) const {
    if (!options_.new_streams || !trace) return 7 + role;
    return role == 0 ? 20 : 21 + 8 * step + role;
  }

  bool damaged() { return options_.damage > 0 && below(options_.damage) == 0; }

  std::mt19937 random_;
  Options options_;
  std::vector<Op> ops_;
  std::size_t loop_begin_ = 0, loop_end_ = 0;
  std::vector<std::size_t> rounds_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> numbers_;
  Nanoseconds now_ = 1'000'000;
  run::Run run_;
  std::vector<run::OperatorId> truth_;
};

struct Score {
  double found = 0;  // of the program's kernels
  double right = 0;  // of those found
  double steps = 0;  // counted, of the true ones
};

Score score(unsigned seed, const Options& options) {
  Maker maker(seed, options);
  maker.play();
  const run::Block& block = maker.run().blocks.front();
  const Recognition result = recognise(maker.run(), block, step_templates(maker.run(), block));
  double all = 0, found = 0, right = 0;
  for (std::size_t i = 0; i < maker.truth().size(); ++i) {
    if (!maker.truth()[i].valid()) continue;
    ++all;
    if (!result.op[i].valid()) continue;
    ++found;
    if (result.op[i] == maker.truth()[i]) ++right;
  }
  const double steps = steps_between(result.marks, 0, block.steps.back().end);
  return {found / all, found > 0 ? right / found : 0, steps / static_cast<double>(options.steps)};
}

RC_GTEST_PROP(Recognise, APlainProgramIsRecognisedWhole, (unsigned seed)) {
  const Score score = attribute::score(seed, {});
  RC_ASSERT(score.found == 1.0);
  RC_ASSERT(score.right == 1.0);
  RC_ASSERT(std::abs(score.steps - 1) < 0.02);
}

// What an operator costs of which only sets are known is not known: that is not nothing.
RC_GTEST_PROP(Recognise, SetsThatTheTraceLeavesOutAreNotMissed, (unsigned seed)) {
  Options options;
  options.sets = true;
  Maker maker(seed, options);
  maker.play();
  const run::Block& block = maker.run().blocks.front();
  const Recognition result = recognise(maker.run(), block, step_templates(maker.run(), block));
  RC_ASSERT(result.op == maker.truth());
  RC_ASSERT(result.launches.back());
  RC_ASSERT(std::abs(steps_between(result.marks, 0, block.steps.back().end) - 60) < 1.2);
}

// Programs drawn by lot can hold stretches that no order of kernels tells apart: one in some
// hundreds. So much of any of them is right, and of many nearly all.
constexpr double kOfAny = 0.92, kOfMany = 0.998;

Options with_shapes(unsigned seed) {
  Options options;
  options.shapes = 1 + seed % 5;
  options.marked = seed % 2 == 0;
  return options;
}
Options with_an_unseen_shape(unsigned) {
  Options options;
  options.unseen = true;
  return options;
}
Options with_loops(unsigned) {
  Options options;
  options.loops = true;
  options.shapes = 2;
  return options;
}
Options with_streams(unsigned seed) {
  Options options;
  options.streams = 2 + seed % 3;
  options.new_streams = seed % 2 == 0;
  return options;
}

void expect_most(Score score) {
  RC_ASSERT(score.found >= kOfAny);
  RC_ASSERT(score.right >= kOfAny);
}

RC_GTEST_PROP(Recognise, ShapesAreToldApart, (unsigned seed)) {
  expect_most(score(seed, with_shapes(seed)));
}
RC_GTEST_PROP(Recognise, AnUnseenShapeIsRecognisedByName, (unsigned seed)) {
  expect_most(score(seed, with_an_unseen_shape(seed)));
}
RC_GTEST_PROP(Recognise, LoopsGoRoundAsOftenAsTheyLike, (unsigned seed)) {
  expect_most(score(seed, with_loops(seed)));
}
RC_GTEST_PROP(Recognise, StreamsAreKnownByWhatTheyRun, (unsigned seed)) {
  expect_most(score(seed, with_streams(seed)));
}

TEST(Recognise, OfManyProgramsNearlyAllIsRight) {
  constexpr unsigned kPrograms = 150;
  for (const auto& options : {with_shapes, with_an_unseen_shape, with_loops, with_streams}) {
    double found = 0, right = 0;
    for (unsigned seed = 0; seed < kPrograms; ++seed) {
      const Score one = score(7919 * seed, options(7919 * seed));
      found += one.found / kPrograms;
      right += one.right / kPrograms;
    }
    EXPECT_GE(found, kOfMany);
    EXPECT_GE(right, kOfMany);
  }
}

RC_GTEST_PROP(Recognise, DamageCostsLittleMoreThanWhatItTouches, (unsigned seed)) {
  Options options;
  options.shapes = 2;
  options.damage = 150;
  const Score score = attribute::score(seed, options);
  RC_ASSERT(score.found >= 0.95);
  RC_ASSERT(score.right >= 0.95);
}

RC_GTEST_PROP(Recognise, AllOfItTogetherNeverFails, (unsigned seed)) {
  const Options options{.shapes = 1 + seed % 4,
                        .streams = 1 + seed % 3,
                        .new_streams = seed % 2 == 0,
                        .loops = true,
                        .unseen = true,
                        .marked = seed % 5 != 0,
                        .sets = seed % 7 < 3,
                        .damage = 2 + seed % 60,
                        .steps = 20};
  const Score score = attribute::score(seed, options);
  RC_ASSERT(score.found >= 0 && score.found <= 1);
  RC_ASSERT(std::isfinite(score.steps));
}

TEST(Recognise, WhatWasNotRecognisedIsNamed) {
  run::Run run;
  run.operators.emplace_back();
  run.kernels = {{"gemm", {1, 1, 1}, {32, 1, 1}, {}}, {"log", {1, 1, 1}, {32, 1, 1}, {}}};
  run::Block block;
  block.order_kernels = {{run::KernelId(0)}, {0}, {10}, {7}, {run::OperatorId(0)}, {0}};
  for (std::size_t i = 0; i < 10; ++i) {
    block.trace_kernels.kernel.push_back(run::KernelId(i % 5 == 0 ? 1 : 0));
    block.trace_kernels.start.push_back(static_cast<Nanoseconds>(100 * i));
    block.trace_kernels.duration.push_back(10);
    block.trace_kernels.stream.push_back(7);
  }
  const Recognition result = recognise(run, block, step_templates(run, block));
  EXPECT_DOUBLE_EQ(result.share, 0.8);
  EXPECT_EQ(unrecognised(run, block.trace_kernels, result), "log (20.0 %)");
}

// A step on other inputs than those whose values were recorded is as much of a call as its kernels
// take of that one's time.
TEST(Recognise, ACallOnOtherInputsCountsByItsTime) {
  run::Run run;
  run.operators.emplace_back();
  run.inputs = {{"prefill"}, {"decode"}};
  run.kernels = {{"gemm", {8, 1, 1}, {32, 1, 1}, {}}, {"gemm", {1, 1, 1}, {32, 1, 1}, {}}};
  run::Block block;
  const run::InputsId prefill(0), decode(1);
  block.steps = {{run::Pass::values, 0, 0, 1, prefill},
                 {run::Pass::order, 1, 1, 2, prefill},
                 {run::Pass::order, 2, 2, 3, decode}};
  block.order_kernels = {{run::KernelId(0), run::KernelId(1)},     {0, 1000}, {800, 100}, {7, 7},
                         {run::OperatorId(0), run::OperatorId(0)}, {1, 2}};
  block.trace_kernels = {
      {run::KernelId(0), run::KernelId(1)}, {5000, 6000}, {800, 100}, {7, 7}, {{}, {}}, {0, 0}};
  const Recognition result = recognise(run, block, step_templates(run, block));
  EXPECT_FLOAT_EQ(result.calls[0], 1);
  EXPECT_FLOAT_EQ(result.calls[1], 0.125);
}

}  // namespace
}  // namespace joulediff::attribute
