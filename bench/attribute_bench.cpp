// Joules for the operators of the recorded GPT-2, from its raw samples.
#include <benchmark/benchmark.h>

#include "attribute/attribute.h"
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

}  // namespace
