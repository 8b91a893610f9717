// Joules for the operators of the recorded GPT-2, from its raw samples; recognition of long traces.
#include <benchmark/benchmark.h>
#include <random>
#include <string>
#include <vector>

#include "attribute/attribute.h"
#include "attribute/period.h"
#include "attribute/recognise.h"
#include "recorded.h"

namespace {

using namespace joulediff;

void attribute_recorded(benchmark::State& state) {
  const run::Run run = bench::read("a");
  for (auto _ : state) benchmark::DoNotOptimize(attribute::attribute(run));
  std::size_t kernels = 0;
  for (const run::Block& block : run.blocks)
    kernels += block.order_kernels.size() + block.trace_kernels.size();
  state.counters["operators"] = static_cast<double>(run.operators.size());
  state.counters["kernels"] = static_cast<double>(kernels);
}
BENCHMARK(attribute_recorded)->Unit(benchmark::kMillisecond);

// A server's trace: prefill and decode steps of a thousand kernels, one kernel in a thousand lost,
// one inserted, decode steps in shapes of their own.
run::Run served(std::size_t kernels) {
  constexpr std::size_t kStep = 1000, kNames = 40, kShapes = 8;
  run::Run run;
  run.operators.resize(kStep);
  for (std::uint32_t shape = 0; shape <= kShapes; ++shape)
    for (std::size_t name = 0; name < kNames; ++name)
      run.kernels.push_back({"kernel_" + std::to_string(name), {shape, 1, 1}, {32, 1, 1}, {}});
  run.inputs.resize(kShapes);
  run::Block& block = run.blocks.emplace_back();
  std::mt19937 random(1);
  Nanoseconds now = 0;
  const auto add = [&](run::KernelSeries& series, std::size_t kernel, run::OperatorId op,
                       std::uint32_t step) {
    series.kernel.emplace_back(kernel);
    series.start.push_back(now += 3000);
    series.duration.push_back(2500);
    series.stream.push_back(7);
    series.op.push_back(op);
    series.step.push_back(step);
  };
  const auto play = [&](run::KernelSeries& series, run::Pass pass, std::uint32_t step,
                        std::size_t shape) {
    const bool trace = pass == run::Pass::trace;
    const Nanoseconds begin = now;
    for (std::size_t k = 0; k < kStep; ++k) {
      const std::size_t name = (k * 7 + k / 13) % (kNames - 1);
      if (trace && random() % kStep == 0) add(series, kNames - 1, {}, 0);
      if (!trace || random() % kStep != 0)
        add(series, shape * kNames + name, trace ? run::OperatorId() : run::OperatorId(k), step);
    }
    block.steps.push_back({pass, step, begin, now, run::InputsId(shape)});
  };
  for (std::uint32_t step = 0; step < kShapes; ++step)
    play(block.order_kernels, run::Pass::order, step, step);
  for (std::uint32_t step = 0; block.trace_kernels.size() < kernels; ++step)
    play(block.trace_kernels, run::Pass::trace, step, random() % kShapes);
  return run;
}

void recognise(benchmark::State& state) {
  const run::Run run = served(static_cast<std::size_t>(state.range(0)));
  double share = 0;
  for (auto _ : state) {
    const run::Block& block = run.blocks.front();
    share = attribute::recognise(run, block, attribute::step_templates(run, block)).share;
  }
  state.counters["recognised"] = share;
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(recognise)->Arg(100'000)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

void find_period(benchmark::State& state) {
  const run::Run run = served(static_cast<std::size_t>(state.range(0)));
  std::vector<std::uint32_t> symbols;
  for (const run::KernelId kernel : run.blocks.front().trace_kernels.kernel)
    symbols.push_back(kernel.value % 40);
  double fit = 0;
  for (auto _ : state)
    if (const auto period = attribute::find_period(symbols)) fit = period->fit;
  state.counters["fit"] = fit;
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(find_period)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
