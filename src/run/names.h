// The names of coded values: their place in the list is their code in the file, and every JSON of
// ours says the name.
#pragma once

#include <array>
#include <string_view>

#include "run/model.h"

namespace joulediff::run {

template <class E>
inline constexpr std::array<std::string_view, 0> kNames{};

template <>
inline constexpr std::array<std::string_view, 4> kNames<Role>{"computed", "input", "parameter",
                                                              "constant"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Phase>{"forward", "backward", "optimizer"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<KernelKind>{"kernel", "copy", "set"};
template <>
inline constexpr std::array<std::string_view, 5> kNames<Pass>{"warmup", "values", "order", "trace",
                                                              "replay"};
template <>
inline constexpr std::array<std::string_view, 4> kNames<ReplayKind>{"op", "static", "idle", "cold"};
template <>
inline constexpr std::array<std::string_view, 24> kNames<Source>{
    "nvml_energy",       "nvml_power_samples", "nvml_power_instant", "nvml_power_average",
    "nvml_power_memory", "nvml_sm_clock",      "nvml_memory_clock",  "nvml_temperature",
    "nvml_throttle",     "nvml_power_limit",   "host_cpu",           "rapl_package",
    "nvml_power_module", "rapl_dram",          "rapl_psys",          "hwmon_power",
    "hwmon_energy",      "amd_energy",         "amd_power",          "amd_sm_clock",
    "amd_memory_clock",  "amd_temperature",    "external_power",     "host_load"};
template <>
inline constexpr std::array<std::string_view, 5> kNames<SynchronisationKind>{
    "other", "event", "stream_event", "stream", "context"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Severity>{"note", "warning", "error"};
template <>
inline constexpr std::array<std::string_view, 15> kNames<value::DType>{
    "other", "float32", "float64", "float16",   "bfloat16",   "int8",        "int16",      "int32",
    "int64", "uint8",   "boolean", "complex64", "complex128", "float8_e4m3", "float8_e5m2"};

// "?" for a code that is none of them.
template <class E>
constexpr std::string_view name(E value) {
  static_assert(!kNames<E>.empty());
  const auto code = static_cast<std::size_t>(value);
  return code < kNames<E>.size() ? kNames<E>[code] : std::string_view("?");
}

}  // namespace joulediff::run
