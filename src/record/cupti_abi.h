// The part of CUPTI's binary interface that the recorder uses, declared here so that building needs
// no CUDA and one binary serves every version. Records are read by prefixes: what we need lies at
// the same place in the records of CUDA 12 (CUpti_ActivityKernel8 and 9, Memcpy5, MemcpyPtoP4,
// Memset4, Synchronization) and 13 (Kernel10, Memcpy6, MemcpyPtoP4, Memset4, Synchronization2), so
// one layout serves both; cupti_abi_test.cpp holds it against the real headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace joulediff::record::cupti {

using Result = int;
constexpr Result kSuccess = 0;
constexpr Result kMultipleSubscribers = 39;

enum Kind : int {
  kMemcpy = 1,
  kMemset = 2,
  kConcurrentKernel = 10,
  kMemcpy2 = 22,  // between devices
  kSynchronization = 38,
};

constexpr std::uint32_t kForced = 1;  // flag of cuptiActivityFlushAll

// cuptiGetVersion: 19 is CUDA 12.0, 28 is 12.9, and since 13.0 it is 10000 major + 100 minor + ...
constexpr bool layout_is_known(std::uint32_t version) {
  return (version >= 19 && version < 100) || (version >= 130000 && version < 140000);
}

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
  std::uint8_t skipped5[32];
  std::uint64_t graph_node;  // 0: not launched by a graph
};

struct MemcpyActivity {
  std::int32_t kind;
  std::uint8_t copy_kind, source_kind, destination_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
};

struct MemcpyPtoPActivity {
  std::int32_t kind;
  std::uint8_t copy_kind, source_kind, destination_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream;
  std::uint8_t skipped[16];
  std::uint32_t correlation;
};

struct MemsetActivity {
  std::int32_t kind;
  std::uint32_t value;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
};

struct SynchronizationActivity {
  std::int32_t kind, type;
  std::uint64_t start, end;
  std::uint32_t correlation, context, stream;
};

struct CallbackData {
  std::int32_t site;  // 0: on entry
  std::uint8_t skipped[52];
  std::uint64_t* correlation_data;
  std::uint32_t correlation;
};
constexpr std::int32_t kApiEnter = 0;
constexpr int kDriverDomain = 1, kRuntimeDomain = 2;

// The API functions that launch kernels: what a stack is taken for.
constexpr std::uint32_t kDriverLaunches[] = {
    307, 442,  // cuLaunchKernel, _ptsz
    477, 478,  // cuLaunchCooperativeKernel, _ptsz
    514, 515,  // cuGraphLaunch, _ptsz
    652, 653,  // cuLaunchKernelEx, _ptsz
};
constexpr std::uint32_t kRuntimeLaunches[] = {
    211, 214,  // cudaLaunchKernel, _ptsz
    269, 270,  // cudaLaunchCooperativeKernel, _ptsz
    311, 312,  // cudaGraphLaunch, _ptsz
    430, 431,  // cudaLaunchKernelExC, _ptsz
};

constexpr bool launches(int domain, std::uint32_t function) {
  const auto is_one = [function](const auto& functions) {
    for (const std::uint32_t one : functions)
      if (one == function) return true;
    return false;
  };
  return domain == kRuntimeDomain ? is_one(kRuntimeLaunches)
                                  : domain == kDriverDomain && is_one(kDriverLaunches);
}

struct SubscriberParams {
  std::size_t size;
  const char* name;
  char* old_name;  // who holds CUPTI, where it is another
  std::size_t old_name_size;
};

using Subscriber = struct SubscriberOpaque*;
using Callback = void (*)(void* user, int domain, std::uint32_t function, const void* data);

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
  // What follows may be missing.
  Result (*ActivityRegisterTimestampCallback)(std::uint64_t (*now)());
  Result (*Subscribe)(Subscriber*, Callback, void* user);
  Result (*Subscribe_v2)(Subscriber*, Callback, void* user, SubscriberParams*);
  Result (*Unsubscribe)(Subscriber);
  Result (*EnableCallback)(std::uint32_t enable, Subscriber, int domain, std::uint32_t function);
  Result (*EnableDomain)(std::uint32_t enable, Subscriber, int domain);
};

}  // namespace joulediff::record::cupti
