// A stand-in for libnvidia-ml.so.1: boards with a known truth. Power is a square wave of
// CLOCK_MONOTONIC (or constant); the energy counter, the ring and the fields are derived from it
// the way an H200 shows them: the counter moves every 100 ms and costs 3 ms to read, the ring holds
// 119 samples 20 ms apart, the average trails by a second.
//
// With FAKE_NVML_PLAY (a file that capture.cpp wrote, as h200_calls.txt) each call answers what the
// real library had answered last at that time after the first call.
//
// FAKE_NVML_BOARDS (1), FAKE_NVML_LOW and _HIGH (milliwatts, 100000 and 300000), FAKE_NVML_PERIOD
// (ms of the wave, 0: always low), FAKE_NVML_MIG (0), FAKE_NVML_OLD (no fields, no energy counter),
// FAKE_NVML_CLOCK (a file that holds the SM clock, MHz).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <time.h>
#include <vector>

#include "device/nvml_abi.h"

namespace {

using namespace joulediff::device::abi;

constexpr Return kInvalidArgument = 2;
constexpr long long kMillisecond = 1'000'000;

long long now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

struct Change {
  long long time;
  std::string name;
  long long value;
};

std::vector<Change> script() {
  std::vector<Change> changes;
  const char* path = std::getenv("FAKE_NVML_SCRIPT");
  if (!path) return changes;
  std::ifstream file(path);
  const long long begin = now(CLOCK_MONOTONIC);
  double seconds = 0;
  std::string name;
  long long value = 0;
  while (file >> seconds >> name >> value)
    changes.push_back({begin + static_cast<long long>(seconds * 1e9), name, value});
  return changes;
}

std::mutex mutex;
std::map<std::string, long long>& overrides() {
  static auto* const all = new std::map<std::string, long long>;  // calls outlive the exit
  return *all;
}

long long setting(const char* name, long long otherwise) {
  const std::scoped_lock lock(mutex);
  static const auto* const changes = new std::vector<Change>(script());
  if (const auto found = overrides().find(name); found != overrides().end()) return found->second;
  const char* text = std::getenv(name);
  long long value = text ? std::atoll(text) : otherwise;
  const long long time = now(CLOCK_MONOTONIC);
  for (const Change& change : *changes)
    if (change.name == name && change.time <= time) value = change.value;
  return value;
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
bool is(Device device, const char* name) {
  const long long board = setting(name, 0);
  return board == -1 || board == index_of(device) + 1LL;
}
// Every call about a board begins with this.
Return state(Device device) {
  while (is(device, "FAKE_NVML_HANG")) pause_for(10 * kMillisecond);
  return is(device, "FAKE_NVML_LOST") ? kGpuIsLost : kSuccess;
}
#define JD_STATE(device) \
  if (const Return trouble = state(device); trouble != kSuccess) return trouble
// The instant at which a counter that stands still began to; `tick` for one that goes on.
long long unless_frozen(Device device, long long tick) {
  if (!is(device, "FAKE_NVML_FROZEN")) return tick;
  const std::scoped_lock lock(mutex);
  static auto* const since = new std::map<unsigned, long long>;
  return since->try_emplace(index_of(device), tick).first->second;
}
bool old_driver() {
  return setting("FAKE_NVML_OLD", 0) != 0;
}

// What a real library answered: by call and its arguments, in the order of time.
struct Answer {
  long long time;
  Return result;
  long long value;
};
class Played {
 public:
  static const Played* get() {
    const char* const path = std::getenv("FAKE_NVML_PLAY");
    if (path == nullptr) return nullptr;
    static const auto* const all = new Played(path);
    return all;
  }
  const std::vector<Answer>& all(const std::string& call) const { return answers_.at(call); }
  template <class T>
  Return last(const std::string& call, T& value) const {
    const auto found = answers_.find(call);
    if (found == answers_.end()) return kNotSupported;
    const Answer* answer = &found->second.front();
    for (const Answer& next : found->second)
      if (next.time <= now(CLOCK_MONOTONIC) - begin_) answer = &next;
    value = static_cast<T>(answer->value);
    return answer->result;
  }
  long long begin_real() const { return begin_real_; }

 private:
  explicit Played(const char* path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      std::istringstream in(line);
      Answer answer{};
      std::string call;
      if (!(in >> answer.time >> call >> answer.result)) continue;
      std::vector<std::string> rest{std::istream_iterator<std::string>(in), {}};
      answer.value = std::stoll(rest.back());
      rest.pop_back();
      if (call == "sample") answer.time = std::stoll(rest[0]);
      if (call != "sample")
        for (const std::string& argument : rest) call += " " + argument;
      answers_[call].push_back(answer);
    }
  }

  long long begin_ = now(CLOCK_MONOTONIC), begin_real_ = now(CLOCK_REALTIME);
  std::map<std::string, std::vector<Answer>> answers_;
};

Return put(char* out, unsigned size, const char* text) {
  if (std::strlen(text) >= size) return kInsufficientSize;
  std::strcpy(out, text);
  return kSuccess;
}

}  // namespace

extern "C" {

void fake_nvml_set(const char* name, long long value) {
  const std::scoped_lock lock(mutex);
  overrides()[name] = value;
}
void fake_nvml_reset() {
  const std::scoped_lock lock(mutex);
  overrides().clear();
}

Return nvmlInit_v2() {
  while (setting("FAKE_NVML_HANG_INIT", 0) != 0) pause_for(10 * kMillisecond);
  return static_cast<Return>(setting("FAKE_NVML_INIT", kSuccess));
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
  return state(*device);
}

Return nvmlDeviceGetName(Device device, char* out, unsigned size) {
  const bool unlike = setting("FAKE_NVML_UNLIKE", 0) != 0;
  return put(out, size,
             unlike ? ("Fake H" + std::to_string(index_of(device))).c_str() : "Fake H200");
}

Return nvmlDeviceGetUUID(Device device, char* out, unsigned size) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-%08x-0000-0000-0000-000000000000",
                0xfa4e0000u + index_of(device));
  return put(out, size, text);
}

Return nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  *current = *pending = is(device, "FAKE_NVML_MIG") ? 1 : 0;
  return kSuccess;
}

Return nvmlDeviceGetVirtualizationMode(Device device, int* mode) {
  constexpr int kVgpu = 2;
  *mode = is(device, "FAKE_NVML_VGPU") ? kVgpu : 0;
  return kSuccess;
}

Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* all) {
  JD_STATE(device);
  const long long pid = setting("FAKE_NVML_PROCESS", 0);
  if (*count < 1) return kInsufficientSize;
  *count = pid != 0 ? 1 : 0;
  if (pid != 0) all[0] = {static_cast<unsigned>(pid), 3ULL << 30, ~0U, ~0U};
  return kSuccess;
}

Return nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  JD_STATE(device);
  if (const Played* played = Played::get()) return played->last("power", *milliwatts);
  const long long t = now(CLOCK_MONOTONIC);
  *milliwatts = static_cast<unsigned>(energy_mj(t) - energy_mj(t - 1'000'000'000));
  if (is(device, "FAKE_NVML_ZERO")) *milliwatts = 0;
  return kSuccess;
}

Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  if (old_driver()) return kNotSupported;
  JD_STATE(device);
  pause_for(3 * kMillisecond);
  if (const Played* played = Played::get()) return played->last("energy", *millijoules);
  const long long tick = now(CLOCK_MONOTONIC) / (100 * kMillisecond) * (100 * kMillisecond);
  *millijoules = static_cast<unsigned long long>(
      energy_mj(unless_frozen(device, tick)) + static_cast<double>(setting("FAKE_NVML_OFFSET", 0)));
  if (is(device, "FAKE_NVML_ZERO")) *millijoules = 0;
  if (setting("FAKE_NVML_BITS", 64) < 64) *millijoules %= 1ULL << setting("FAKE_NVML_BITS", 64);
  return kSuccess;
}

Return nvmlDeviceGetSamples(Device device, int kind, unsigned long long since, int* type,
                            unsigned* count, Sample* samples) {
  if (kind != kTotalPowerSamples) return kInvalidArgument;
  JD_STATE(device);
  const long long offset = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
  const long long step = 20 * kMillisecond;
  const long long last = now(CLOCK_MONOTONIC) / step;
  unsigned filled = 0;
  *type = kUnsignedInt;
  if (const Played* played = Played::get()) {
    for (const Answer& sample : played->all("sample")) {
      const long long time = played->begin_real() + sample.time;
      if (time > now(CLOCK_REALTIME)) break;
      const auto time_us = static_cast<unsigned long long>(time / 1000);
      if (time_us <= since) continue;
      if (filled == *count) return kInsufficientSize;
      samples[filled].time_us = time_us;
      samples[filled++].value.ui = static_cast<unsigned>(sample.value);
    }
    *count = filled;
    return kSuccess;
  }
  for (long long i = last - 118; i <= last; ++i) {
    const auto time_us = static_cast<unsigned long long>((i * step + offset) / 1000);
    if (time_us <= since) continue;
    if (filled == *count) return kInsufficientSize;
    samples[filled].time_us = time_us;
    samples[filled].value.ui =
        is(device, "FAKE_NVML_ZERO") ? 0 : static_cast<unsigned>(power_mw(i * step));
    ++filled;
  }
  *count = filled;
  return kSuccess;
}

Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  if (old_driver()) return kNotSupported;
  JD_STATE(device);
  for (int i = 0; i < count; ++i) {
    FieldValue& field = fields[i];
    field.value_type = kUnsignedInt;
    field.result = kSuccess;
    if (const Played* played = Played::get()) {
      field.result =
          played->last("field " + std::to_string(field.field) + " " + std::to_string(field.scope),
                       field.value.ui);
      continue;
    }
    if (field.field == kFieldPowerInstant && field.scope == kScopeGpu)
      field.value.ui = is(device, "FAKE_NVML_ABSURD")
                           ? 53'131'000
                           : static_cast<unsigned>(power_mw(now(CLOCK_MONOTONIC)));
    else if (field.field == kFieldPowerAverage && field.scope == kScopeGpu)
      nvmlDeviceGetPowerUsage(device, &field.value.ui);
    else if (field.field == kFieldPowerAverage && field.scope == kScopeMemory)
      field.value.ui = 41'000;
    else if (field.scope == kScopeModule && is(device, "FAKE_NVML_MODULE"))
      field.value.ui = 250'000;
    else
      field.result = kNotSupported;
    if (is(device, "FAKE_NVML_ZERO")) field.value.ui = 0;
  }
  return kSuccess;
}

Return nvmlDeviceGetClockInfo(Device device, int clock, unsigned* megahertz) {
  JD_STATE(device);
  if (const Played* played = Played::get())
    return played->last("clock " + std::to_string(clock), *megahertz);
  *megahertz = clock == kClockSm ? 1980 : 3201;
  // Of a program that plays the power limit: its clock is what it writes there.
  if (const char* path = std::getenv("FAKE_NVML_CLOCK"); path && clock == kClockSm)
    std::ifstream(path) >> *megahertz;
  return kSuccess;
}

Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* reasons) {
  JD_STATE(device);
  if (const Played* played = Played::get()) return played->last("reasons", *reasons);
  *reasons = 0;
  return kSuccess;
}

Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* milliwatts) {
  JD_STATE(device);
  if (const Played* played = Played::get()) return played->last("limit", *milliwatts);
  *milliwatts = 700'000;
  return kSuccess;
}

Return nvmlDeviceGetTemperature(Device device, int, unsigned* degrees) {
  JD_STATE(device);
  if (const Played* played = Played::get()) return played->last("temperature", *degrees);
  *degrees = 45;
  return kSuccess;
}

}  // extern "C"
