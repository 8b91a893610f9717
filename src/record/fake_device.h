// For tests: a program that launches on the device of tests/fakes/cupti.
#pragma once

#include <cstdint>
#include <dlfcn.h>

#include "fake_cupti.h"
#include "record/cupti_abi.h"
#include "record/recorded.h"

namespace joulediff::record {

inline const Environment kFake{{"JOULEDIFF_CUPTI", JOULEDIFF_FAKE_CUPTI}};
inline Environment fake_with(const std::string& key, const std::string& value) {
  Environment environment = kFake;
  environment[key] = value;
  return environment;
}

template <class Function>
Function* control(const char* name) {
  static void* const library = dlopen(JOULEDIFF_FAKE_CUPTI, RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
// FAKE(fake_cupti_enabled)() calls that function of the library that the recorder has.
#define FAKE(function) ::joulediff::record::control<decltype(function)>(#function)

constexpr std::uint64_t bits(auto... kinds) {
  return ((std::uint64_t{1} << kinds) | ...);
}
constexpr std::uint64_t kKernelsOnly =
    bits(cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemcpy2, cupti::kMemset);
constexpr std::uint64_t kWithoutSets = kKernelsOnly & ~bits(cupti::kMemset);
constexpr std::uint64_t kWithWaits = kKernelsOnly | bits(cupti::kSynchronization);

inline FakeLaunch launch(int kind, std::uint64_t start, std::uint64_t ns) {
  FakeLaunch made{};
  made.kind = kind;
  made.start = start;
  made.end = start + ns;
  made.stream = 7;
  made.grid = 128;
  made.block = 256;
  return made;
}
inline std::uint32_t call(const FakeLaunch& made) {
  return FAKE(fake_cupti_call)(&made);
}
// A kernel that runs from `start` for `ns`.
inline std::uint32_t kernel(std::uint64_t start, std::uint64_t ns, const char* name = "_Z3addPfi") {
  FakeLaunch made = launch(cupti::kConcurrentKernel, start, ns);
  made.name = name;
  return call(made);
}

}  // namespace joulediff::record
