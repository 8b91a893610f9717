// The whole of `joulediff compare` on the recorded GPT-2 pair, from the files to the text.
#include <benchmark/benchmark.h>

#include "attribute/attribute.h"
#include "diagnose/compare.h"
#include "match/match.h"
#include "recorded.h"
#include "report/page.h"
#include "rules/rules.h"

namespace {

using namespace joulediff;

constexpr double kLimit = 1;  // second: part of what the project promises

std::string compare() {
  const run::Run a = bench::read("a"), b = bench::read("b");
  const rules::Verdict verdict = rules::comparable(a, b);
  const auto cost_a = attribute::attribute(a), cost_b = attribute::attribute(b);
  const match::Match match = match::match(a, b);
  const diagnose::Comparison comparison =
      diagnose::compare({a, b, cost_a.value(), cost_b.value(), match, verdict});
  report::Page page;
  page.a = {&a, &*cost_a};
  page.b = {&b, &*cost_b};
  page.comparison = &comparison;
  return report::text(page);
}

void compare_recorded(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(compare());
  state.counters["limit_s"] = kLimit;
}
BENCHMARK(compare_recorded)->Unit(benchmark::kMillisecond);

}  // namespace
