// Matching of two GPT-2-sized programs: 12 layers, written in two styles; and of the recorded GPT-2
// pair, beside a plain reference for the stage that finds equal tensors: all pairs of equal counts,
// each compared element by element, without windows on moments or a limit that ends a comparison.
#include <benchmark/benchmark.h>
#include <limits>
#include <sys/resource.h>

#include "match/anchors.h"
#include "match/match.h"
#include "match/test_programs.h"
#include "match/tolerance.h"
#include "recorded.h"

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

// How it grows: layers are what programs have many of. The last has some 100,000 operators a side.
void match_deep(benchmark::State& state) {
  const std::int64_t layers = state.range(0);
  testing::GptSize size;
  size.layers = layers;
  size.tokens = 8;
  size.width = 24;
  const Programs p{testing::gpt(testing::Style::addmm_hnd, {}, size),
                   testing::gpt(testing::Style::separate_nhd, {}, size)};
  std::size_t regions = 0;
  for (auto _ : state) regions = match(p.a, p.b).regions.size();
  state.counters["operators_a"] = static_cast<double>(p.a.operators.size());
  state.counters["operators_b"] = static_cast<double>(p.b.operators.size());
  state.counters["regions"] = static_cast<double>(regions);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["peak_GB"] = static_cast<double>(used.ru_maxrss) * 1024e-9;  // of the process
}
BENCHMARK(match_deep)->Arg(32)->Arg(320)->Arg(2000)->Unit(benchmark::kMillisecond)->Iterations(1);

// Every candidate of equal moments has to be compared: the coarsest tolerance.
void match_gpt_bf16(benchmark::State& state) {
  Programs p = programs(testing::Style::addmm_hnd, testing::Style::separate_nhd, state.range(0));
  p.a.settings.push_back({"torch.float32_matmul_precision", "medium"});
  for (auto _ : state) benchmark::DoNotOptimize(match(p.a, p.b));
}
BENCHMARK(match_gpt_bf16)->Arg(12)->Unit(benchmark::kMillisecond);

// The recorded pair: at most 20 ms.
void match_recorded(benchmark::State& state) {
  const Programs p{joulediff::bench::read("a"), joulediff::bench::read("b")};
  std::size_t regions = 0;
  for (auto _ : state) regions = match(p.a, p.b).regions.size();
  state.counters["operators_a"] = static_cast<double>(p.a.operators.size());
  state.counters["operators_b"] = static_cast<double>(p.b.operators.size());
  state.counters["regions"] = static_cast<double>(regions);
  state.counters["limit_ms"] = 20;
}
BENCHMARK(match_recorded)->Unit(benchmark::kMillisecond);

struct Sides {
  explicit Sides(const Programs& p)
      : graph_a(make_graph(p.a)),
        graph_b(make_graph(p.b)),
        classes_a(equal_classes(p.a, graph_a)),
        classes_b(equal_classes(p.b, graph_b)),
        a{p.a, graph_a, classes_a},
        b{p.b, graph_b, classes_b},
        tolerance(joulediff::match::tolerance(p.a, p.b)) {}
  Graph graph_a, graph_b;
  Classes classes_a, classes_b;
  SideView a, b;
  double tolerance;
};

void anchors_recorded(benchmark::State& state) {
  const Programs p{joulediff::bench::read("a"), joulediff::bench::read("b")};
  const Sides sides(p);
  std::size_t pairs = 0;
  for (auto _ : state) pairs = nearest_pairs(sides.a, sides.b, sides.tolerance).size();
  state.counters["pairs"] = static_cast<double>(pairs);
}
BENCHMARK(anchors_recorded)->Unit(benchmark::kMillisecond);

// The least distance over all common geometries and axis permutations; infinity without any.
double plain_distance(const EqualClass& a, const EqualClass& b) {
  double least = std::numeric_limits<double>::infinity();
  for (const Geometry& x : a.geometries)
    for (const Geometry& y : b.geometries) {
      if (x.sorted != y.sorted || x.sample.size() != y.sample.size()) continue;
      for (const std::vector<std::uint8_t>& axes : permutations(x.shape, y.shape)) {
        const std::vector<std::uint32_t> places = permuted(x, y, axes);
        double sum = 0;
        for (std::size_t i = 0; i < places.size(); ++i) {
          const double d = static_cast<double>(x.sample[i]) - y.sample[places[i]];
          sum += d * d;
        }
        const double norm = std::max({x.norm, y.norm, 1e-300});
        least = std::min(least, std::sqrt(sum) / norm);
      }
    }
  return least;
}

std::uint64_t count_of(const SideView& side, const EqualClass& c) {
  return side.run.tensors[c.tensor.index()].fingerprint.count;
}

// Mutual nearest of all pairs of equal counts within the tolerance.
std::size_t all_pairs(const Sides& sides) {
  const auto& of_a = sides.classes_a.classes;
  const auto& of_b = sides.classes_b.classes;
  std::vector<std::pair<double, std::size_t>> best_a(of_a.size(), {sides.tolerance, of_b.size()});
  std::vector<std::pair<double, std::size_t>> best_b(of_b.size(), {sides.tolerance, of_a.size()});
  for (std::size_t i = 0; i < of_a.size(); ++i)
    for (std::size_t j = 0; j < of_b.size(); ++j) {
      if (count_of(sides.a, of_a[i]) != count_of(sides.b, of_b[j])) continue;
      const double d = plain_distance(of_a[i], of_b[j]);
      best_a[i] = std::min(best_a[i], {d, j});
      best_b[j] = std::min(best_b[j], {d, i});
    }
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const std::size_t j = best_a[i].second;
    if (j < of_b.size() && best_b[j].second == i) ++pairs;
  }
  return pairs;
}

void peer_anchors_all_pairs(benchmark::State& state) {
  const Programs p{joulediff::bench::read("a"), joulediff::bench::read("b")};
  const Sides sides(p);
  std::size_t pairs = 0;
  for (auto _ : state) pairs = all_pairs(sides);
  state.counters["pairs"] = static_cast<double>(pairs);
}
BENCHMARK(peer_anchors_all_pairs)->Unit(benchmark::kMillisecond);

}  // namespace
