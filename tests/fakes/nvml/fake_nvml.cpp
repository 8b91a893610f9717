// A stand-in for libnvidia-ml.so.1: boards with a known truth. Power is a square wave of
// CLOCK_MONOTONIC (or constant); the energy counter, the ring and the fields are derived from it
// the way an H200 shows them: the counter moves every 100 ms and costs 3 ms to read, the ring holds
// 119 samples 20 ms apart, the average trails by a second.
//
// FAKE_NVML_BOARDS (1), FAKE_NVML_LOW and _HIGH (milliwatts, 100000 and 300000), FAKE_NVML_PERIOD
// (ms of the wave, 0: always low), FAKE_NVML_MIG (0), FAKE_NVML_OLD (no fields, no energy counter).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <time.h>

#include "device/nvml_abi.h"

namespace {

using namespace joulediff::device::abi;

constexpr Return kInvalidArgument = 2;
constexpr long long kMillisecond = 1'000'000;

long long setting(const char* name, long long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

long long now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void pause_for(long long ns) {
  const timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&t, nullptr);
}

double power_mw(long long ns) {
  const long long period = setting("FAKE_NVML_PERIOD", 0) * kMillisecond;
  const bool high = period > 0 && ns % period >= period / 2;
  return static_cast<double>(high ? setting("FAKE_NVML_HIGH", 300'000)
                                  : setting("FAKE_NVML_LOW", 100'000));
}

// Millijoules from time 0 to `ns`.
double energy_mj(long long ns) {
  const auto low = static_cast<double>(setting("FAKE_NVML_LOW", 100'000));
  const auto high = static_cast<double>(setting("FAKE_NVML_HIGH", 300'000));
  const long long period = setting("FAKE_NVML_PERIOD", 0) * kMillisecond;
  if (period <= 0) return low * static_cast<double>(ns) * 1e-9;
  const auto half = static_cast<double>(period / 2);
  const auto whole = static_cast<double>(ns / period);
  const auto rest = static_cast<double>(ns % period);
  const double at_low = whole * half + std::fmin(rest, half);
  const double at_high = whole * half + std::fmax(0, rest - half);
  return (at_low * low + at_high * high) * 1e-9;
}

unsigned index_of(Device device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}
bool old_driver() {
  return setting("FAKE_NVML_OLD", 0) != 0;
}

Return put(char* out, unsigned size, const char* text) {
  if (std::strlen(text) >= size) return kInsufficientSize;
  std::strcpy(out, text);
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlInit_v2() {
  return kSuccess;
}

Return nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return put(out, size, "580.159");
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(setting("FAKE_NVML_BOARDS", 1));
  return kSuccess;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index >= setting("FAKE_NVML_BOARDS", 1)) return kInvalidArgument;
  *device = reinterpret_cast<Device>(static_cast<std::uintptr_t>(index + 1));
  return kSuccess;
}

Return nvmlDeviceGetName(Device, char* out, unsigned size) {
  return put(out, size, "Fake H200");
}

Return nvmlDeviceGetUUID(Device device, char* out, unsigned size) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-%08x-0000-0000-0000-000000000000",
                0xfa4e0000u + index_of(device));
  return put(out, size, text);
}

Return nvmlDeviceGetMigMode(Device, unsigned* current, unsigned* pending) {
  *current = *pending = static_cast<unsigned>(setting("FAKE_NVML_MIG", 0));
  return kSuccess;
}

Return nvmlDeviceGetPowerUsage(Device, unsigned* milliwatts) {
  const long long t = now(CLOCK_MONOTONIC);
  *milliwatts = static_cast<unsigned>(energy_mj(t) - energy_mj(t - 1'000'000'000));
  return kSuccess;
}

Return nvmlDeviceGetTotalEnergyConsumption(Device, unsigned long long* millijoules) {
  if (old_driver()) return kNotSupported;
  pause_for(3 * kMillisecond);
  const long long tick = now(CLOCK_MONOTONIC) / (100 * kMillisecond) * (100 * kMillisecond);
  *millijoules = static_cast<unsigned long long>(energy_mj(tick));
  return kSuccess;
}

Return nvmlDeviceGetSamples(Device, int kind, unsigned long long since, int* type, unsigned* count,
                            Sample* samples) {
  if (kind != kTotalPowerSamples) return kInvalidArgument;
  const long long offset = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
  const long long step = 20 * kMillisecond;
  const long long last = now(CLOCK_MONOTONIC) / step;
  unsigned filled = 0;
  for (long long i = last - 118; i <= last; ++i) {
    const auto time_us = static_cast<unsigned long long>((i * step + offset) / 1000);
    if (time_us <= since) continue;
    if (filled == *count) return kInsufficientSize;
    samples[filled].time_us = time_us;
    samples[filled].value.ui = static_cast<unsigned>(power_mw(i * step));
    ++filled;
  }
  *count = filled;
  *type = kUnsignedInt;
  return kSuccess;
}

Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  if (old_driver()) return kNotSupported;
  for (int i = 0; i < count; ++i) {
    FieldValue& field = fields[i];
    field.value_type = kUnsignedInt;
    field.result = kSuccess;
    if (field.field == kFieldPowerInstant && field.scope == kScopeGpu)
      field.value.ui = static_cast<unsigned>(power_mw(now(CLOCK_MONOTONIC)));
    else if (field.field == kFieldPowerAverage && field.scope == kScopeGpu)
      nvmlDeviceGetPowerUsage(device, &field.value.ui);
    else if (field.field == kFieldPowerAverage && field.scope == kScopeMemory)
      field.value.ui = 41'000;
    else
      field.result = kNotSupported;
  }
  return kSuccess;
}

Return nvmlDeviceGetClockInfo(Device, int clock, unsigned* megahertz) {
  *megahertz = clock == kClockSm ? 1980 : 3201;
  return kSuccess;
}

Return nvmlDeviceGetCurrentClocksEventReasons(Device, unsigned long long* reasons) {
  *reasons = 0;
  return kSuccess;
}

Return nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return kSuccess;
}

Return nvmlDeviceGetTemperature(Device, int, unsigned* degrees) {
  *degrees = 45;
  return kSuccess;
}

}  // extern "C"
