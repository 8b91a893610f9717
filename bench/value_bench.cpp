// Fingerprints beside what they cannot be faster than: reading the same memory once, on as many
// threads.
#include <benchmark/benchmark.h>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "value/blocks.h"
#include "value/fingerprint.h"

namespace {

using joulediff::value::DType;

const std::vector<std::byte>& memory() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> made(std::size_t{256} << 20);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> some(1 << 16);
    for (float& x : some) x = normal(random);
    for (std::size_t at = 0; at < made.size(); at += some.size() * sizeof(float))
      std::memcpy(made.data() + at, some.data(), some.size() * sizeof(float));
    return made;
  }();
  return bytes;
}

std::span<const std::byte> first(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) *
                          static_cast<std::int64_t>(state.max_iterations));
  return std::span(memory()).first(bytes);
}

std::uint64_t read_part(std::span<const std::byte> bytes) {
  std::uint64_t sums[8] = {};
  for (std::size_t at = 0; at + 64 <= bytes.size(); at += 64) {
    std::uint64_t words[8];
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (std::size_t i = 0; i < 8; ++i) sums[i] += words[i];
  }
  return std::accumulate(sums, sums + 8, std::uint64_t{0});
}

void read_memory(benchmark::State& state) {
  const auto bytes = first(state);
  const std::size_t parts =
      bytes.size() < (std::size_t{4} << 20) ? 1 : std::max(1U, std::thread::hardware_concurrency());
  for (auto _ : state) {
    std::vector<std::uint64_t> sums(parts);
    std::vector<std::jthread> threads;
    for (std::size_t p = 1; p < parts; ++p)
      threads.emplace_back([&, p] {
        sums[p] = read_part(bytes.subspan(bytes.size() / parts * p, bytes.size() / parts));
      });
    sums[0] = read_part(bytes.first(bytes.size() / parts));
    threads.clear();
    benchmark::DoNotOptimize(sums.data());
  }
}

void fingerprint(benchmark::State& state) {
  const auto bytes = first(state);
  const auto dtype = static_cast<DType>(state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(joulediff::value::fingerprint(dtype, bytes));
}

constexpr std::int64_t kCache = 64 << 10, kLarge = 256 << 20;
BENCHMARK(read_memory)->Arg(kCache)->Arg(kLarge)->UseRealTime();
BENCHMARK(fingerprint)
    ->ArgNames({"bytes", "dtype"})
    ->ArgsProduct({{kCache, kLarge},
                   {int(DType::float32), int(DType::bfloat16), int(DType::float16),
                    int(DType::float8_e4m3), int(DType::int64), int(DType::float64)}})
    ->UseRealTime();

}  // namespace
