// What CUPTI itself costs, whoever asks it: records of the given kinds into buffers that nobody
// reads. The floor of any recorder that gets its kernels from CUPTI. For bench/cupti_cost.py.
//
//     g++ -O2 -std=c++20 -shared -fPIC -Isrc bench/cupti_cost.cpp -o libcupti_cost.so -ldl

#include <atomic>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <vector>

#include "record/cupti_abi.h"

namespace {

namespace cupti = joulediff::record::cupti;

constexpr std::size_t kBytes = std::size_t{1} << 20;
std::mutex mutex;
std::vector<std::uint8_t*> unused;
std::atomic<std::uint64_t> received = 0;

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  const std::lock_guard lock(mutex);
  if (unused.empty()) unused.push_back(new std::uint8_t[kBytes]());
  *buffer = unused.back();
  unused.pop_back();
  *size = kBytes;
  *records = 0;
}

void completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  received += valid;
  const std::lock_guard lock(mutex);
  unused.push_back(buffer);
}

cupti::Subscriber subscriber = nullptr;
std::atomic<std::uint64_t> called = 0;

void on_call(void*, int, std::uint32_t, const void*) {
  called.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t monotonic() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

template <class Function>
Function* function(const char* name) {
  static void* const library = [] {
    for (const char* file : {"libcupti.so.13", "libcupti.so.12"})
      if (void* mapped = dlopen(file, RTLD_NOW | RTLD_NOLOAD)) return mapped;
    return dlopen("/usr/local/cuda/lib64/libcupti.so", RTLD_NOW);
  }();
  return library != nullptr ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

}  // namespace

// Each returns 0, or what CUPTI answered; -1: there is no CUPTI.
//
// Where CUPTI keeps the times of kernels until it reads them: on the device, as it does unasked
// since CUDA 12.0.1, or in pinned memory of the host. To be called before CUDA comes up.
extern "C" int cost_pinned(int pinned) {
  constexpr int kHostPinned = 8;  // CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED
  auto* const set = function<int(int, std::size_t*, void*)>("cuptiActivitySetAttribute");
  auto value = static_cast<std::uint8_t>(pinned);
  std::size_t size = sizeof value;
  return set != nullptr ? set(kHostPinned, &size, &value) : -1;
}

extern "C" int cost_start(int own_clock) {
  auto* const callbacks = function<int(cupti::BufferRequested, cupti::BufferCompleted)>(
      "cuptiActivityRegisterCallbacks");
  if (callbacks == nullptr) return -1;
  const int result = callbacks(requested, completed);
  if (result != 0 || own_clock == 0) return result;
  return function<int(std::uint64_t (*)())>("cuptiActivityRegisterTimestampCallback")(monotonic);
}

extern "C" int cost_switch(int kind, int on) {
  return function<int(int)>(on != 0 ? "cuptiActivityEnable" : "cuptiActivityDisable")(kind);
}

// A callback at each call of the API, as the recorder's order pass asks for.
extern "C" int cost_callbacks(int on) {
  if (on == 0) return function<int(cupti::Subscriber)>("cuptiUnsubscribe")(subscriber);
  const int result = function<int(cupti::Subscriber*, cupti::Callback, void*)>("cuptiSubscribe")(
      &subscriber, on_call, nullptr);
  if (result != 0) return result;
  for (const int domain : {cupti::kDriverDomain, cupti::kRuntimeDomain})
    function<int(std::uint32_t, cupti::Subscriber, int)>("cuptiEnableDomain")(1, subscriber,
                                                                              domain);
  return 0;
}

// CUPTI leaves the process; the next that asks for something makes it come back.
extern "C" int cost_leave() {
  return function<int()>("cuptiFinalize")();
}

extern "C" std::uint64_t cost_flush() {
  function<int(std::uint32_t)>("cuptiActivityFlushAll")(cupti::kForced);
  return received.exchange(0);
}
