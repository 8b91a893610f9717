// Writes what the calls to a real libnvidia-ml answer, for fake_nvml to play again:
//
//     g++ -O2 -std=c++20 -Isrc tests/fakes/nvml/capture.cpp -o capture -ldl
//     ./capture SECONDS [BOARD] > calls.txt
//
// A line is `ns call result value...`: nanoseconds since the first call by CLOCK_MONOTONIC, taken
// when the call returned. Ring samples carry the time that NVML stamped them with, in nanoseconds
// since the first call by CLOCK_REALTIME.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <vector>

#include "device/nvml_abi.h"

namespace {

using namespace joulediff::device::abi;

long long clock_ns(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

template <class Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (argc < 2 || library == nullptr) {
    std::fprintf(stderr, "capture: %s\n", argc < 2 ? "usage: capture SECONDS [BOARD]" : dlerror());
    return 2;
  }
  Functions nvml{};
  find(library, nvml.Init_v2, "nvmlInit_v2");
  find(library, nvml.DeviceGetHandleByIndex_v2, "nvmlDeviceGetHandleByIndex_v2");
  find(library, nvml.DeviceGetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption");
  find(library, nvml.DeviceGetPowerUsage, "nvmlDeviceGetPowerUsage");
  find(library, nvml.DeviceGetSamples, "nvmlDeviceGetSamples");
  find(library, nvml.DeviceGetFieldValues, "nvmlDeviceGetFieldValues");
  find(library, nvml.DeviceGetClockInfo, "nvmlDeviceGetClockInfo");
  find(library, nvml.DeviceGetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksEventReasons");
  find(library, nvml.DeviceGetEnforcedPowerLimit, "nvmlDeviceGetEnforcedPowerLimit");
  find(library, nvml.DeviceGetTemperature, "nvmlDeviceGetTemperature");
  Device device = nullptr;
  nvml.Init_v2();
  if (nvml.DeviceGetHandleByIndex_v2(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0, &device) !=
      kSuccess)
    return 4;

  const long long begin = clock_ns(CLOCK_MONOTONIC), begin_real = clock_ns(CLOCK_REALTIME);
  const long long end = begin + static_cast<long long>(std::strtod(argv[1], nullptr) * 1e9);
  const auto at = [&] { return clock_ns(CLOCK_MONOTONIC) - begin; };
  unsigned long long last_sample = static_cast<unsigned long long>(begin_real / 1000);
  for (long long i = 0; clock_ns(CLOCK_MONOTONIC) < end; ++i) {
    unsigned long long energy = 0, reasons = 0;
    unsigned value = 0;
    const long long called = at();
    Return result = nvml.DeviceGetTotalEnergyConsumption(device, &energy);
    std::printf("%lld energy %d %llu %lld\n", at(), result, energy, at() - called);
    FieldValue fields[4]{};
    fields[0].field = kFieldPowerInstant;
    for (unsigned f = 1; f < 4; ++f) fields[f].field = kFieldPowerAverage;
    fields[2].scope = kScopeMemory;
    fields[3].scope = kScopeModule;
    if (nvml.DeviceGetFieldValues(device, 4, fields) == kSuccess)
      for (const FieldValue& field : fields)
        std::printf("%lld field %d %u %u %u\n", at(), field.result, field.field, field.scope,
                    field.value.ui);
    if (i % 20 == 0) {
      std::vector<Sample> samples(512);
      auto count = static_cast<unsigned>(samples.size());
      int type = 0;
      result = nvml.DeviceGetSamples(device, kTotalPowerSamples, last_sample, &type, &count,
                                     samples.data());
      for (unsigned s = 0; result == kSuccess && s < count; ++s) {
        last_sample = samples[s].time_us;
        std::printf("%lld sample %d %lld %u\n", at(), result,
                    static_cast<long long>(last_sample) * 1000 - begin_real, samples[s].value.ui);
      }
      result = nvml.DeviceGetPowerUsage(device, &value);
      std::printf("%lld power %d %u\n", at(), result, value);
      for (const int clock : {kClockSm, kClockMemory}) {
        result = nvml.DeviceGetClockInfo(device, clock, &value);
        std::printf("%lld clock %d %d %u\n", at(), result, clock, value);
      }
      result = nvml.DeviceGetCurrentClocksEventReasons(device, &reasons);
      std::printf("%lld reasons %d %llu\n", at(), result, reasons);
      result = nvml.DeviceGetEnforcedPowerLimit(device, &value);
      std::printf("%lld limit %d %u\n", at(), result, value);
      result = nvml.DeviceGetTemperature(device, kTemperatureGpu, &value);
      std::printf("%lld temperature %d %u\n", at(), result, value);
    }
  }
}
