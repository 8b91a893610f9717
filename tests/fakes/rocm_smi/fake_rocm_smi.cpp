// A stand-in for librocm_smi64.so: boards of 200 W whose counter of energy, in units of 15.3 uJ, is
// that power times CLOCK_MONOTONIC.
//
// FAKE_ROCM_BOARDS (1), FAKE_ROCM_FROZEN (its counter stands still), FAKE_ROCM_FACTOR (by which the
// counter exaggerates, 1), FAKE_ROCM_VERSION (of the library, 7), FAKE_ROCM_INIT (what rsmi_init
// gives, 0), FAKE_ROCM_SECOND_DIE (odd boards show 0 W).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <time.h>

#include "device/rocm_smi_abi.h"

namespace {

using namespace joulediff::device::rocm;

constexpr double kMicrowatts = 200e6;
constexpr double kResolution = 15.3;

long long setting(const char* name, long long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

bool second_die(std::uint32_t board) {
  return setting("FAKE_ROCM_SECOND_DIE", 0) != 0 && board % 2 == 1;
}

template <class Levels>
void fill(void* out, std::uint64_t current) {
  Levels levels{};
  levels.count = 3;
  levels.current = 1;
  levels.frequency[1] = current;
  std::memcpy(out, &levels, sizeof levels);
}

}  // namespace

extern "C" {

Status rsmi_init(std::uint64_t) {
  return static_cast<Status>(setting("FAKE_ROCM_INIT", kSuccess));
}

Status rsmi_version_get(Version* version) {
  *version = {static_cast<std::uint32_t>(setting("FAKE_ROCM_VERSION", 7)), 0, 0, ""};
  return kSuccess;
}

Status rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = static_cast<std::uint32_t>(setting("FAKE_ROCM_BOARDS", 1));
  return kSuccess;
}

Status rsmi_dev_name_get(std::uint32_t, char* name, std::size_t size) {
  std::snprintf(name, size, "Fake MI300X");
  return kSuccess;
}

Status rsmi_dev_unique_id_get(std::uint32_t board, std::uint64_t* id) {
  *id = 0xfa4eULL << 48 | board;
  return kSuccess;
}

Status rsmi_dev_energy_count_get(std::uint32_t board, std::uint64_t* count, float* resolution,
                                 std::uint64_t* time) {
  const double at = setting("FAKE_ROCM_FROZEN", 0) != 0 ? 1000 : seconds();
  const auto factor = static_cast<double>(setting("FAKE_ROCM_FACTOR", 1));
  *count =
      second_die(board) ? 0 : static_cast<std::uint64_t>(factor * kMicrowatts * at / kResolution);
  *resolution = static_cast<float>(kResolution);
  *time = static_cast<std::uint64_t>(at * 1e9);
  return kSuccess;
}

Status rsmi_dev_power_ave_get(std::uint32_t board, std::uint32_t, std::uint64_t* microwatts) {
  *microwatts = second_die(board) ? 0 : static_cast<std::uint64_t>(kMicrowatts);
  return kSuccess;
}

Status rsmi_dev_gpu_clk_freq_get(std::uint32_t, int clock, void* out) {
  const std::uint64_t hertz = clock == kClockMemory ? 1'300'000'000 : 2'100'000'000;
  if (setting("FAKE_ROCM_VERSION", 7) >= kVersionWithFlag)
    fill<Frequencies>(out, hertz);
  else
    fill<FrequenciesBefore6>(out, hertz);
  return kSuccess;
}

Status rsmi_dev_temp_metric_get(std::uint32_t, std::uint32_t sensor, int,
                                std::int64_t* millidegrees) {
  if (sensor == kTemperatureEdge) return kNotSupported;  // as an MI300X has none
  *millidegrees = 51'000;
  return kSuccess;
}

}  // extern "C"
