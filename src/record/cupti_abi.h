// The part of CUPTI's binary interface that the recorder uses, declared here so that building needs
// no CUDA and one binary serves every version. Records are read by prefixes: what we need lies at
// the same place in the kernel records of CUDA 12 (CUpti_ActivityKernel9) and 13 (Kernel10), in
// Memcpy5 and 6 and in Memset4; cupti_abi_test.cpp holds this against the real headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace joulediff::record::cupti {

using Result = int;
constexpr Result kSuccess = 0;

enum Kind : int {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kExternalCorrelation = 39,
};

constexpr int kCustom0 = 3;           // of CUpti_ExternalCorrelationKind
constexpr std::uint32_t kForced = 1;  // flag of cuptiActivityFlushAll

// cuptiGetVersion: 18 is CUDA 12.0, and since 13.0 it is 10000 major + 100 minor + ...
constexpr std::uint32_t kOldestVersion = 18;
constexpr std::uint32_t kFirstUnknownVersion = 140000;

struct Activity {
  std::int32_t kind;
};

struct KernelActivity {
  std::int32_t kind;
  std::uint8_t skipped1[12];
  std::uint64_t start, end;
  std::uint8_t skipped2[8];
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3];
  std::uint8_t skipped3[16];
  std::uint32_t correlation;
  std::uint8_t skipped4[8];
  const char* name;
};

struct MemcpyActivity {
  std::int32_t kind;
  std::uint8_t copy_kind, source_kind, destination_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
};

struct MemsetActivity {
  std::int32_t kind;
  std::uint32_t value;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
};

struct ExternalCorrelationActivity {
  std::int32_t kind, external_kind;
  std::uint64_t external_id;
  std::uint32_t correlation, skipped;
};

using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid);

// One pointer for each function of libcupti, under its name there.
struct Functions {
  Result (*GetVersion)(std::uint32_t* version);
  Result (*GetResultString)(Result result, const char** text);
  Result (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted);
  Result (*ActivityEnable)(int kind);
  Result (*ActivityDisable)(int kind);
  Result (*ActivityFlushAll)(std::uint32_t flag);
  Result (*ActivityGetNextRecord)(std::uint8_t* buffer, std::size_t valid, Activity** record);
  Result (*ActivityGetNumDroppedRecords)(void* context, std::uint32_t stream, std::size_t* count);
  Result (*ActivityPushExternalCorrelationId)(int kind, std::uint64_t id);
  Result (*ActivityPopExternalCorrelationId)(int kind, std::uint64_t* id);
  Result (*ActivityRegisterTimestampCallback)(std::uint64_t (*now)());  // may be missing
};

}  // namespace joulediff::record::cupti
