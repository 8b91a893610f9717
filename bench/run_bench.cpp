// Reading a run file: the whole way from the path to a validated run. The peer reads the file's
// bytes alone, which is what no reader can do without.
#include <benchmark/benchmark.h>

#include "base/file.h"
#include "recorded.h"

namespace {

using namespace joulediff;

void read_run(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(bench::read("a"));
  state.counters["bytes"] =
      static_cast<double>(read_file(bench::path("a"), run::kMaxRunFileBytes)->size());
}
BENCHMARK(read_run)->Unit(benchmark::kMillisecond);

void peer_bytes_alone(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_file(bench::path("a"), run::kMaxRunFileBytes));
}
BENCHMARK(peer_bytes_alone)->Unit(benchmark::kMillisecond);

void write_run_bytes(benchmark::State& state) {
  const run::Run run = bench::read("a");
  for (auto _ : state) benchmark::DoNotOptimize(run::write_run_bytes(run));
}
BENCHMARK(write_run_bytes)->Unit(benchmark::kMillisecond);

}  // namespace
