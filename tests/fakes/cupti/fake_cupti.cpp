// A libcupti that has no device: it keeps the calls and buffers as the real one does, and what
// "ran" is what a test says. Kernels go to one buffer and waits to another.
//
// Environment: FAKE_CUPTI_VERSION (default 130001), FAKE_CUPTI_ERROR (what cuptiActivityEnable
// answers), FAKE_CUPTI_NO_CLOCK (timestamps stay those of CLOCK_REALTIME), FAKE_CUPTI_NO_CALLBACKS
// (nobody can subscribe), FAKE_CUPTI_PLAY (a file of JOULEDIFF_CUPTI_RAW, played with the first
// forced flush).

#include "fake_cupti.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "record/cupti_abi.h"

using namespace joulediff::record::cupti;

namespace {

// Whole sizes of the records, of which cupti_abi.h declares prefixes.
constexpr std::size_t kKernel9Bytes = 208, kKernel10Bytes = 216, kMemcpy5Bytes = 88,
                      kMemcpy6Bytes = 96, kMemcpyPtoPBytes = 96, kMemsetBytes = 88,
                      kSynchronizationBytes = 40, kSynchronization2Bytes = 56, kExternalBytes = 24,
                      kApiBytes = 40;
constexpr int kExternalCorrelation = 39;  // in buffers that were filled elsewhere
constexpr Result kInvalid = 1, kNoMoreRecords = 12;

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

struct Watcher {
  Callback callback;
  void* user;
  std::string name;
  std::map<std::pair<int, std::uint32_t>, bool> functions;
  std::map<int, bool> domains;  // all functions of it
};
Watcher* watcher;  // who subscribes
std::size_t rival_buffers;

std::uint32_t version() {
  const char* text = std::getenv("FAKE_CUPTI_VERSION");
  return text != nullptr ? static_cast<std::uint32_t>(std::atoi(text)) : 130001;
}

std::size_t size_of(int kind) {
  return fake_cupti_record_bytes(kind, version());
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
Record transfer(const FakeLaunch& launch, std::uint32_t id) {
  Record r{};
  r.kind = launch.kind;
  r.bytes = launch.bytes;
  r.start = launch.start;
  r.end = launch.end;
  r.device = launch.device;
  r.context = launch.context;
  r.stream = launch.stream;
  r.correlation = id;
  return r;
}

void add_launch(const FakeLaunch& launch, std::uint32_t id, std::vector<Buffer>& ready) {
  if (launch.kind == kConcurrentKernel) {
    KernelActivity r{};
    r.kind = launch.kind;
    r.start = launch.start;
    r.end = launch.end;
    r.stream = launch.stream;
    r.grid[0] = static_cast<std::int32_t>(launch.grid);
    r.block[0] = static_cast<std::int32_t>(launch.block);
    r.grid[1] = r.grid[2] = r.block[1] = r.block[2] = 1;
    r.correlation = id;
    r.device = launch.device;
    r.context = launch.context;
    r.name = launch.name;
    r.graph_node = launch.graph_node;
    add(device, r, ready);
  } else if (launch.kind == kSynchronization) {
    SynchronizationActivity r{};
    r.kind = launch.kind;
    r.type = launch.copy_kind;
    r.start = launch.start;
    r.end = launch.end;
    r.context = launch.context;
    r.stream = launch.stream;
    r.correlation = id;
    add(host, r, ready);
  } else if (launch.kind == kMemcpy2) {
    auto r = transfer<MemcpyPtoPActivity>(launch, id);
    r.copy_kind = launch.copy_kind;
    add(device, r, ready);
  } else if (launch.kind == kMemcpy) {
    auto r = transfer<MemcpyActivity>(launch, id);
    r.copy_kind = launch.copy_kind;
    add(device, r, ready);
  } else {
    add(device, transfer<MemsetActivity>(launch, id), ready);
  }
  device.incomplete |= launch.start == 0;
}

// Who got the buffer.
void rival_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  static std::uint8_t buffers[2][std::size_t{1} << 20];  // the device's and the host's
  static std::size_t next = 0;
  *buffer = buffers[next++ % 2];
  *size = sizeof buffers[0];
  *most = 0;
}
void rival_completed(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {
  ++rival_buffers;  // its own or not, as Kineto takes what it does not know
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result subscribe(Subscriber* out, Callback callback, void* user, std::string name, char* old_name,
                 std::size_t old_size) {
  if (std::getenv("FAKE_CUPTI_NO_CALLBACKS") != nullptr) return kInvalid;
  const std::lock_guard lock(mutex);
  if (watcher != nullptr) {
    if (old_name != nullptr && old_size > 0)
      old_name[watcher->name.copy(old_name, old_size - 1)] = '\0';
    return kMultipleSubscribers;
  }
  watcher = new Watcher{callback, user, std::move(name), {}, {}};
  *out = reinterpret_cast<Subscriber>(watcher);
  return kSuccess;
}

// The API call as its subscriber sees it, on the thread that makes it.
void tell_watcher(std::uint32_t function, std::uint32_t correlation) {
  Watcher seen{};
  {
    const std::lock_guard lock(mutex);
    if (watcher == nullptr ||
        !(watcher->domains[kRuntimeDomain] || watcher->functions[{kRuntimeDomain, function}]))
      return;
    seen = *watcher;
  }
  CallbackData data{};
  data.correlation = correlation;
  seen.callback(seen.user, kRuntimeDomain, function, &data);
  data.site = 1;
  seen.callback(seen.user, kRuntimeDomain, function, &data);
}

// The function of the runtime that leads to it: cudaGetDevice leads to nothing.
std::uint32_t function_of(const FakeLaunch* launch) {
  constexpr std::uint32_t kGetDevice = 17, kMemcpyAsync = 41, kMemsetAsync = 51,
                          kStreamSynchronize = 131, kLaunchKernel = 211;
  switch (launch == nullptr ? 0 : launch->kind) {
    case kConcurrentKernel: return kLaunchKernel;
    case kMemcpy:
    case kMemcpy2: return kMemcpyAsync;
    case kMemset: return kMemsetAsync;
    case kSynchronization: return kStreamSynchronize;
    default: return kGetDevice;
  }
}

}  // namespace

extern "C" {

std::size_t fake_cupti_record_bytes(int kind, std::uint32_t of_version) {
  const bool thirteen = of_version >= 130000;
  switch (kind) {
    case kConcurrentKernel: return thirteen ? kKernel10Bytes : kKernel9Bytes;
    case kMemcpy: return thirteen ? kMemcpy6Bytes : kMemcpy5Bytes;
    case kMemcpy2: return kMemcpyPtoPBytes;
    case kMemset: return kMemsetBytes;
    case kSynchronization: return thirteen ? kSynchronization2Bytes : kSynchronizationBytes;
    case kExternalCorrelation: return kExternalBytes;
    default: return kApiBytes;
  }
}

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
  static const char* play = std::getenv("FAKE_CUPTI_PLAY");
  if (play != nullptr && flag == kForced && enabled != 0) {
    fake_cupti_play(play);
    play = nullptr;
  }
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

Result cuptiSubscribe(Subscriber* out, Callback callback, void* user) {
  return subscribe(out, callback, user, "", nullptr, 0);
}

Result cuptiSubscribe_v2(Subscriber* out, Callback callback, void* user, SubscriberParams* params) {
  return subscribe(out, callback, user, params->name, params->old_name, params->old_name_size);
}

Result cuptiUnsubscribe(Subscriber subscriber) {
  const std::lock_guard lock(mutex);
  if (watcher == nullptr || reinterpret_cast<Watcher*>(subscriber) != watcher) return kInvalid;
  delete watcher;
  watcher = nullptr;
  return kSuccess;
}

Result cuptiEnableCallback(std::uint32_t enable, Subscriber subscriber, int domain,
                           std::uint32_t function) {
  const std::lock_guard lock(mutex);
  if (reinterpret_cast<Watcher*>(subscriber) != watcher) return kInvalid;
  watcher->functions[{domain, function}] = enable != 0;
  return kSuccess;
}

Result cuptiEnableDomain(std::uint32_t enable, Subscriber subscriber, int domain) {
  const std::lock_guard lock(mutex);
  if (reinterpret_cast<Watcher*>(subscriber) != watcher) return kInvalid;
  watcher->domains[domain] = enable != 0;
  if (enable == 0)
    std::erase_if(watcher->functions, [&](auto& f) { return f.first.first == domain; });
  return kSuccess;
}

std::uint32_t fake_cupti_call(const FakeLaunch* launch) {
  std::vector<Buffer> ready;
  std::uint32_t id = 0;
  {
    const std::lock_guard lock(mutex);
    id = ++correlations;
  }
  tell_watcher(function_of(launch), id);
  {
    const std::lock_guard lock(mutex);
    if (launch != nullptr && is_on(launch->kind)) add_launch(*launch, id, ready);
  }
  complete(ready);
  return id;
}

void fake_cupti_call_as(std::uint32_t correlation) {
  tell_watcher(function_of(nullptr), correlation);
}

void fake_cupti_drop(std::size_t count) {
  const std::lock_guard lock(mutex);
  lost += count;
}

std::uint64_t fake_cupti_enabled(void) {
  const std::lock_guard lock(mutex);
  return enabled;
}

bool fake_cupti_rival_subscribes(const char* name) {
  Subscriber subscriber = nullptr;
  return subscribe(&subscriber, nullptr, nullptr, name, nullptr, 0) == kSuccess;
}

void fake_cupti_rival_registers(void) {
  const std::lock_guard lock(mutex);
  requested = rival_requested;
  completed = rival_completed;
}

void fake_cupti_rival_leaves(void) {
  const std::lock_guard lock(mutex);
  delete watcher;
  watcher = nullptr;
  enabled = 0;
}

std::size_t fake_cupti_rival_buffers(void) {
  const std::lock_guard lock(mutex);
  return rival_buffers;
}

bool fake_cupti_subscribed(void) {
  const std::lock_guard lock(mutex);
  return watcher != nullptr;
}

std::size_t fake_cupti_watched(void) {
  const std::lock_guard lock(mutex);
  if (watcher == nullptr) return 0;
  std::size_t count = 0;
  for (const auto& [function, on] : watcher->functions) count += on;
  for (const auto& [domain, on] : watcher->domains) count += on;
  return count;
}

bool fake_cupti_play(const char* path) {
  static std::map<std::uint64_t, std::string> names;  // outlives what points to it
  const std::string bytes = contents_of(path);
  std::string stem = path;
  stem.resize(stem.size() - std::strlen(".buf"));
  const auto of_version =
      static_cast<std::uint32_t>(std::atoi(stem.c_str() + stem.rfind(".v") + 2));
  std::ifstream table(stem + ".names");
  std::uint64_t address = 0;
  for (std::string name; table >> std::hex >> address && std::getline(table >> std::ws, name);)
    names[address] = name;
  if (bytes.empty()) return false;
  Buffer buffer;
  std::size_t most = 0;
  requested(&buffer.bytes, &buffer.size, &most);
  if (buffer.bytes == nullptr || buffer.size < bytes.size()) return false;
  std::memcpy(buffer.bytes, bytes.data(), bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    auto* const record = reinterpret_cast<Activity*>(buffer.bytes + at);
    if (record->kind == kConcurrentKernel) {
      auto& name = reinterpret_cast<KernelActivity*>(record)->name;
      const auto found = names.find(reinterpret_cast<std::uint64_t>(name));
      name = found != names.end() ? found->second.c_str() : nullptr;
    }
    at += fake_cupti_record_bytes(record->kind, of_version);
  }
  completed(nullptr, 0, buffer.bytes, buffer.size, bytes.size());
  return true;
}

}  // extern "C"
