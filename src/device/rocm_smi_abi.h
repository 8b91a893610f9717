// The part of ROCm SMI's C ABI that Joulediff calls, declared here so that building needs no ROCm.
#pragma once

#include <cstddef>
#include <cstdint>

namespace joulediff::device::rocm {

using Status = int;
constexpr Status kSuccess = 0;
constexpr Status kNotSupported = 2;

struct Version {
  std::uint32_t major, minor, patch;
  const char* build;
};

// Hertz of the levels of a clock. Version 6 put a flag in front.
struct FrequenciesBefore6 {
  std::uint32_t count;
  std::uint32_t current;
  std::uint64_t frequency[32];
};
struct Frequencies {
  bool has_deep_sleep;
  std::uint32_t count;
  std::uint32_t current;
  std::uint64_t frequency[33];
};
constexpr std::uint32_t kVersionWithFlag = 6;

constexpr int kClockSystem = 0;
constexpr int kClockMemory = 4;
constexpr std::uint32_t kTemperatureEdge = 0;
constexpr std::uint32_t kTemperatureJunction = 1;
constexpr int kTemperatureCurrent = 0;
constexpr std::size_t kNameSize = 128;

// Every function that is called; the name is the symbol without "rsmi_".
struct Functions {
  Status (*init)(std::uint64_t flags);
  Status (*version_get)(Version*);
  Status (*num_monitor_devices)(std::uint32_t*);
  Status (*dev_name_get)(std::uint32_t, char*, std::size_t);
  Status (*dev_unique_id_get)(std::uint32_t, std::uint64_t*);
  // Counts of `resolution` microjoules.
  Status (*dev_energy_count_get)(std::uint32_t, std::uint64_t* count, float* resolution,
                                 std::uint64_t* time_ns);
  Status (*dev_current_socket_power_get)(std::uint32_t, std::uint64_t* microwatts);
  Status (*dev_power_ave_get)(std::uint32_t, std::uint32_t sensor, std::uint64_t* microwatts);
  Status (*dev_gpu_clk_freq_get)(std::uint32_t, int clock, void* frequencies);
  Status (*dev_temp_metric_get)(std::uint32_t, std::uint32_t sensor, int metric,
                                std::int64_t* millidegrees);
};

}  // namespace joulediff::device::rocm
