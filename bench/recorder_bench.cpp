// What a kernel costs the recorder, end to end: from CUPTI's buffer to the spool. Three minutes at
// 50,000 kernels a second are 9 million records; they come as fast as the fake libcupti makes them,
// on the thread that launches, so that nothing is hidden on another one. The fake's own share is
// measured apart, with somebody else taking the buffers. Counted are processor time, the spool's
// bytes and what the process grew by.

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include "fake_cupti.h"
#include "joulediff/record.h"

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kKernels = 9'000'000;

template <class Function>
Function* control(const char* name) {
  static void* const library = dlopen(JOULEDIFF_FAKE_CUPTI, RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// The recorder reads its folder once, so there is one for the process.
const std::string& spools() {
  static const std::string folder = [] {
    char name[] = "/tmp/jd-bench-XXXXXX";
    const std::string made = mkdtemp(name);
    setenv("JOULEDIFF_SPOOL", made.c_str(), 1);
    setenv("JOULEDIFF_CUPTI", JOULEDIFF_FAKE_CUPTI, 1);
    std::atexit([] { fs::remove_all(std::getenv("JOULEDIFF_SPOOL")); });
    return made;
  }();
  return folder;
}

double spool_bytes() {
  double bytes = 0;
  for (const auto& entry : fs::directory_iterator(spools()))
    bytes += static_cast<double>(entry.file_size());
  return bytes;
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// A model's step: 200 kernels of 40 shapes, some microseconds each.
void launch(std::int64_t count) {
  static const std::string names[8] = {"_Z4gemmILi128ELi64EEvPKfS1_Pf",
                                       "_Z7softmaxPf",
                                       "_Z9layernormPfS_",
                                       "_Z4geluPf",
                                       "_Z3addPfS_",
                                       "_Z9transposePfii",
                                       "_Z6gatherPfPl",
                                       "_Z6reducePfi"};
  const auto call = control<decltype(fake_cupti_call)>("fake_cupti_call");
  static std::uint64_t now = 1'000'000'000;
  for (std::int64_t i = 0; i < count; ++i) {
    FakeLaunch made{};
    made.kind = 10;
    made.name = names[i % 8].c_str();
    made.start = now + 1000 + static_cast<std::uint64_t>(i * 7919 % 500);
    made.end = now = made.start + 4000 + static_cast<std::uint64_t>(i * 104'729 % 20'000);
    made.stream = 7;
    made.grid = static_cast<std::uint32_t>(i % 40);
    made.block = 256;
    call(&made);
  }
}

double processor_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

void recorded_kernels(benchmark::State& state) {
  spools();
  if (jd_kernels(JD_TRACE) != 1) state.SkipWithError("no kernels are recorded");
  launch(100'000);  // buffers and tables are there
  jd_flush();
  const double file = spool_bytes(), memory = resident_bytes();
  const double begin = processor_ns();
  for (auto _ : state) {
    launch(kKernels);
    jd_flush();
  }
  const auto count = static_cast<double>(kKernels * state.iterations());
  state.counters["spool_bytes_per_kernel"] = (spool_bytes() - file) / count;
  state.counters["grown_KiB"] = (resident_bytes() - memory) / 1024;
  state.counters["ns_per_kernel"] = (processor_ns() - begin) / count;
}
BENCHMARK(recorded_kernels)->Unit(benchmark::kMillisecond)->Iterations(1);

void fake_alone(benchmark::State& state) {
  control<decltype(fake_cupti_rival_registers)>("fake_cupti_rival_registers")();
  const double begin = processor_ns();
  for (auto _ : state) launch(kKernels);
  state.counters["ns_per_kernel"] =
      (processor_ns() - begin) / static_cast<double>(kKernels * state.iterations());
}
BENCHMARK(fake_alone)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
