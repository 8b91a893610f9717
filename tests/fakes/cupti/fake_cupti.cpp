// A libcupti that has no device: it keeps the calls, stacks and buffers as the real one does, and
// what "ran" is what a test says. Kernels go to one buffer and API records to another, and the
// kernels' buffer is handed over first: a recorder that relies on the order of records fails here.
//
// Environment: FAKE_CUPTI_VERSION (default 130001), FAKE_CUPTI_ERROR (what cuptiActivityEnable
// answers), FAKE_CUPTI_NO_CLOCK (timestamps stay those of CLOCK_REALTIME).

#include "fake_cupti.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "record/cupti_abi.h"

using namespace joulediff::record::cupti;

namespace {

// Whole sizes of the records, of which cupti_abi.h declares prefixes.
constexpr std::size_t kKernel9Bytes = 208, kKernel10Bytes = 216, kMemcpy5Bytes = 88,
                      kMemcpy6Bytes = 96, kMemsetBytes = 88, kExternalBytes = 24, kApiBytes = 40;
constexpr Result kInvalid = 1, kNoMoreRecords = 12, kQueueEmpty = 18;

struct Buffer {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0, used = 0;
  bool incomplete = false;
};

std::mutex mutex;
BufferRequested requested;
BufferCompleted completed;
std::uint64_t enabled;
std::uint32_t correlations;
std::size_t lost;
Buffer device, host;
thread_local std::vector<std::uint64_t> externals;

std::uint32_t version() {
  const char* text = std::getenv("FAKE_CUPTI_VERSION");
  return text != nullptr ? static_cast<std::uint32_t>(std::atoi(text)) : 130001;
}

std::size_t size_of(int kind) {
  const bool thirteen = version() >= 130000;
  switch (kind) {
    case kConcurrentKernel: return thirteen ? kKernel10Bytes : kKernel9Bytes;
    case kMemcpy: return thirteen ? kMemcpy6Bytes : kMemcpy5Bytes;
    case kMemset: return kMemsetBytes;
    case kExternalCorrelation: return kExternalBytes;
    default: return kApiBytes;
  }
}

void complete(std::vector<Buffer>& ready) {
  for (const Buffer& b : ready) completed(nullptr, 0, b.bytes, b.size, b.used);
  ready.clear();
}

// Under the mutex; a full buffer goes to `ready`.
template <class Record>
void add(Buffer& buffer, const Record& record, std::vector<Buffer>& ready) {
  const std::size_t size = size_of(record.kind);
  if (buffer.bytes != nullptr && buffer.size - buffer.used < size) {
    ready.push_back(buffer);
    buffer = {};
  }
  if (buffer.bytes == nullptr) {
    std::size_t most = 0;
    requested(&buffer.bytes, &buffer.size, &most);
    if (buffer.bytes == nullptr) {
      ++lost;
      return;
    }
  }
  // What we do not declare is filled, so that a reader that strays there is found out.
  std::memset(buffer.bytes + buffer.used, 0xA5, size);
  std::memcpy(buffer.bytes + buffer.used, &record, sizeof record);
  buffer.used += size;
}

bool is_on(int kind) {
  return (enabled >> kind & 1) != 0;
}

template <class Record>
Record transfer(const FakeLaunch& launch) {
  Record r{};
  r.kind = launch.kind;
  r.bytes = launch.bytes;
  r.start = launch.start;
  r.end = launch.end;
  r.stream = launch.stream;
  r.correlation = correlations;
  return r;
}

void add_launch(const FakeLaunch& launch, std::vector<Buffer>& ready) {
  if (launch.kind == kConcurrentKernel) {
    KernelActivity r{};
    r.kind = launch.kind;
    r.start = launch.start;
    r.end = launch.end;
    r.stream = launch.stream;
    r.grid[0] = static_cast<std::int32_t>(launch.grid);
    r.block[0] = static_cast<std::int32_t>(launch.block);
    r.grid[1] = r.grid[2] = r.block[1] = r.block[2] = 1;
    r.correlation = correlations;
    r.name = launch.name;
    add(device, r, ready);
  } else if (launch.kind == kMemcpy) {
    auto r = transfer<MemcpyActivity>(launch);
    r.copy_kind = launch.copy_kind;
    add(device, r, ready);
  } else {
    add(device, transfer<MemsetActivity>(launch), ready);
  }
  device.incomplete |= launch.start == 0;
}

struct ApiActivity {
  std::int32_t kind;
  std::uint8_t skipped[28];
  std::uint32_t correlation, skipped2;
};
static_assert(sizeof(ApiActivity) == kApiBytes);

}  // namespace

extern "C" {

Result cuptiGetVersion(std::uint32_t* out) {
  *out = version();
  return kSuccess;
}

Result cuptiGetResultString(Result, const char** text) {
  *text = "FAKE_ERROR";
  return kSuccess;
}

Result cuptiActivityRegisterCallbacks(BufferRequested on_request, BufferCompleted on_complete) {
  requested = on_request;
  completed = on_complete;
  return kSuccess;
}

Result cuptiActivityRegisterTimestampCallback(std::uint64_t (*)()) {
  return std::getenv("FAKE_CUPTI_NO_CLOCK") != nullptr ? kInvalid : kSuccess;
}

Result cuptiActivityEnable(int kind) {
  if (const char* error = std::getenv("FAKE_CUPTI_ERROR")) return std::atoi(error);
  const std::lock_guard lock(mutex);
  enabled |= std::uint64_t{1} << kind;
  return kSuccess;
}

Result cuptiActivityDisable(int kind) {
  const std::lock_guard lock(mutex);
  enabled &= ~(std::uint64_t{1} << kind);
  return kSuccess;
}

Result cuptiActivityFlushAll(std::uint32_t flag) {
  std::vector<Buffer> ready;
  {
    const std::lock_guard lock(mutex);
    for (Buffer* b : {&device, &host}) {
      if (b->bytes == nullptr || (b->incomplete && flag != kForced)) continue;
      ready.push_back(*b);
      *b = {};
    }
  }
  complete(ready);
  return kSuccess;
}

Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, Activity** record) {
  auto* const next = *record == nullptr
                         ? buffer
                         : reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= buffer + valid) return kNoMoreRecords;
  *record = reinterpret_cast<Activity*>(next);
  return kSuccess;
}

Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* count) {
  const std::lock_guard lock(mutex);
  *count = lost;
  lost = 0;
  return kSuccess;
}

Result cuptiActivityPushExternalCorrelationId(int kind, std::uint64_t id) {
  if (kind != kCustom0) return kInvalid;
  externals.push_back(id);
  return kSuccess;
}

Result cuptiActivityPopExternalCorrelationId(int kind, std::uint64_t* id) {
  if (kind != kCustom0) return kInvalid;
  if (externals.empty()) return kQueueEmpty;
  *id = externals.back();
  externals.pop_back();
  return kSuccess;
}

std::uint32_t fake_cupti_call(const FakeLaunch* launch) {
  std::vector<Buffer> ready;
  std::uint32_t id = 0;
  {
    const std::lock_guard lock(mutex);
    id = ++correlations;
    if (is_on(kRuntime)) {
      if (is_on(kExternalCorrelation) && !externals.empty())
        add(host,
            ExternalCorrelationActivity{kExternalCorrelation, kCustom0, externals.back(), id, 0},
            ready);
      add(host, ApiActivity{kRuntime, {}, id, 0}, ready);
    }
    if (launch != nullptr && is_on(launch->kind)) add_launch(*launch, ready);
  }
  complete(ready);
  return id;
}

void fake_cupti_drop(std::size_t count) {
  const std::lock_guard lock(mutex);
  lost += count;
}

std::uint64_t fake_cupti_enabled(void) {
  const std::lock_guard lock(mutex);
  return enabled;
}

}  // extern "C"
