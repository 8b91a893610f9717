// Matching of two GPT-2-sized programs: 12 layers, written in two styles.
#include <benchmark/benchmark.h>

#include "match/match.h"
#include "match/test_programs.h"

namespace {

using namespace joulediff::match;

struct Programs {
  joulediff::run::Run a;
  joulediff::run::Run b;
};

Programs programs(testing::Style a, testing::Style b, std::int64_t layers) {
  testing::GptSize size;
  size.layers = layers;
  size.tokens = 16;
  size.width = 48;
  testing::Options backwards;
  backwards.backwards = true;
  return {testing::gpt(a, {}, size), testing::gpt(b, backwards, size)};
}

void match_gpt(benchmark::State& state) {
  const Programs p = programs(testing::Style::addmm_hnd, testing::Style::fused, state.range(0));
  std::size_t regions = 0;
  for (auto _ : state) regions = match(p.a, p.b).regions.size();
  state.counters["operators_a"] = static_cast<double>(p.a.operators.size());
  state.counters["operators_b"] = static_cast<double>(p.b.operators.size());
  state.counters["regions"] = static_cast<double>(regions);
}
BENCHMARK(match_gpt)->Arg(2)->Arg(12)->Arg(48)->Unit(benchmark::kMillisecond);

// Every candidate of equal moments has to be compared: the coarsest tolerance.
void match_gpt_bf16(benchmark::State& state) {
  Programs p = programs(testing::Style::addmm_hnd, testing::Style::separate_nhd, state.range(0));
  p.a.settings.push_back({"torch.float32_matmul_precision", "medium"});
  for (auto _ : state) benchmark::DoNotOptimize(match(p.a, p.b));
}
BENCHMARK(match_gpt_bf16)->Arg(12)->Unit(benchmark::kMillisecond);

}  // namespace
