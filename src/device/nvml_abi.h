// The part of NVML's C ABI that Joulediff calls, declared here so that building needs no CUDA.
// nvml_test.cpp checks it against <nvml.h> wherever that header is found.
#pragma once

#include <cstdint>

namespace joulediff::device::abi {

using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kNotSupported = 3;
constexpr Return kInsufficientSize = 7;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kGpuIsLost = 15;
constexpr Return kVersionMismatch = 18;

using Device = struct DeviceOpaque*;

union Value {
  double d;
  int si;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  long long sll;
  unsigned short us;
};

enum ValueType : int {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};

struct Sample {
  unsigned long long time_us;  // CLOCK_REALTIME
  Value value;
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long time_us;
  long long latency_us;
  int value_type;
  Return result;
  Value value;
};

constexpr int kTotalPowerSamples = 0;
constexpr unsigned kFieldPowerAverage = 185;
constexpr unsigned kFieldPowerInstant = 186;
constexpr unsigned kScopeGpu = 0;
constexpr unsigned kScopeModule = 1;
constexpr unsigned kScopeMemory = 2;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;
constexpr unsigned kNameSize = 96;
// Virtualization modes: 0 none, 1 passed through whole; the others share the board.
constexpr int kPassthrough = 1;
constexpr unsigned long long kNotAvailable = ~0ULL;

struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;  // bytes
  unsigned gpu_instance;
  unsigned compute_instance;
};

// Every function that is called; the tail is the symbol without "nvml".
struct Functions {
  Return (*Init_v2)();
  Return (*SystemGetDriverVersion)(char*, unsigned);
  Return (*DeviceGetCount_v2)(unsigned*);
  Return (*DeviceGetHandleByIndex_v2)(unsigned, Device*);
  Return (*DeviceGetName)(Device, char*, unsigned);
  Return (*DeviceGetUUID)(Device, char*, unsigned);
  Return (*DeviceGetMigMode)(Device, unsigned*, unsigned*);
  Return (*DeviceGetVirtualizationMode)(Device, int*);
  Return (*DeviceGetComputeRunningProcesses_v3)(Device, unsigned*, ProcessInfo*);
  Return (*DeviceGetGraphicsRunningProcesses_v3)(Device, unsigned*, ProcessInfo*);
  Return (*DeviceGetPowerUsage)(Device, unsigned*);
  Return (*DeviceGetTotalEnergyConsumption)(Device, unsigned long long*);
  Return (*DeviceGetSamples)(Device, int, unsigned long long, int*, unsigned*, Sample*);
  Return (*DeviceGetFieldValues)(Device, int, FieldValue*);
  Return (*DeviceGetClockInfo)(Device, int, unsigned*);
  Return (*DeviceGetCurrentClocksEventReasons)(Device, unsigned long long*);
  Return (*DeviceGetEnforcedPowerLimit)(Device, unsigned*);
  Return (*DeviceGetTemperature)(Device, int, unsigned*);
};

}  // namespace joulediff::device::abi
