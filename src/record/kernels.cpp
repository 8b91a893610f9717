// CUPTI fills buffers of ours and hands them back on threads of its own. The order pass asks it
// also for external correlation: for each API call made while an operator's number is on the
// thread's stack, a record (operator, correlation id) comes beside the kernels with that
// correlation id, in any order and in other buffers. Both are kept in tables until the pass is over
// and are then joined, so that of thousands of API calls only those that launched something reach
// the spool. The trace pass asks for kernels alone: API records can double the time of a
// launch-bound program.

#include "record/kernels.h"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <exception>
#include <unistd.h>

#include "joulediff/record.h"

namespace joulediff::record {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kFirstBuffers = 2;
constexpr std::size_t kMostBuffers = 64;
constexpr std::size_t kBatch = 1024;

// CUPTI's callbacks carry no pointer of ours.
std::atomic<Kernels*> receiver = nullptr;

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* records) noexcept {
  *records = 0;
  *buffer = receiver.load()->take_buffer(*size);
}

void buffer_completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                      std::size_t valid) noexcept {
  receiver.load()->completed(context, stream, buffer, valid);
}

// CUPTI calls into this library until the process ends, also when an engine has closed it.
void stay_loaded() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&buffer_requested), &self) != 0 && self.dli_fname != nullptr)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

std::string demangled(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return mangled;
  std::string name = text;
  std::free(text);
  return name;
}

std::string_view copy_name(std::uint8_t kind) {
  constexpr std::string_view kNames[] = {"memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
                                         "memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA",
                                         "memcpy DtoD", "memcpy HtoH", "memcpy PtoP"};
  return kNames[kind < std::size(kNames) ? kind : 0];
}

// Copies and sets have no grid; their size takes its place, so that they are told apart by it.
template <class Record>
spool::Kernel transfer(const Record& r, spool::KernelKind kind) {
  spool::Kernel out{};
  out.start_ns = r.start;
  out.end_ns = r.end;
  out.correlation = r.correlation;
  out.stream = r.stream;
  out.grid[0] = static_cast<std::uint32_t>(r.bytes);
  out.grid[1] = static_cast<std::uint32_t>(r.bytes >> 32);
  out.device = r.device;
  out.kind = static_cast<std::uint32_t>(kind);
  return out;
}

}  // namespace

int Kernels::record(std::uint32_t pass) {
  const std::lock_guard lock(control_);
  const bool wanted = pass == JD_ORDER || pass == JD_TRACE;
  if (state_ == State::untried && wanted && output_.on()) load();
  if (state_ != State::ready) return 0;
  if (!enabled_.empty()) {
    cupti_.ActivityFlushAll(cupti::kForced);
    settle();
  }
  if (!wanted) {
    disable();
    return 0;
  }
  {
    const std::lock_guard data(data_);
    pass_ = pass;
  }
  return enable(pass == JD_ORDER) ? 1 : 0;
}

void Kernels::flush() {
  const std::lock_guard lock(control_);
  if (state_ == State::ready && !enabled_.empty()) cupti_.ActivityFlushAll(0);
  const std::lock_guard data(data_);
  write_batch();
}

void Kernels::unusable(const std::string& why) {
  disable();
  state_ = State::unusable;
  const bool has_driver = access("/dev/nvidiactl", F_OK) == 0;
  output_.diagnostic(has_driver ? "warning" : "note", "record.no_kernels",
                     "no kernels are recorded: " + why);
}

void Kernels::load() {
  std::string why;
  if (!load_cupti(cupti_, why)) return unusable(why);
  stay_loaded();
  receiver = this;
  {
    const std::lock_guard lock(pool_);
    for (std::size_t i = 0; i < kFirstBuffers; ++i) {
      // Zeroed, hence touched: the program's first launches should not pay for page faults.
      buffers_.push_back(std::make_unique<std::uint8_t[]>(kBufferBytes));
      free_.push_back(buffers_.back().get());
    }
  }
  converts_clock_ = cupti_.ActivityRegisterTimestampCallback == nullptr ||
                    cupti_.ActivityRegisterTimestampCallback(now_ns) != cupti::kSuccess;
  const auto result = cupti_.ActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result != cupti::kSuccess) return unusable("libcupti refused the callbacks");
  state_ = State::ready;
}

bool Kernels::enable(bool with_operators) {
  std::vector<int> kinds{cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemset};
  if (with_operators)
    kinds.insert(kinds.end(), {cupti::kExternalCorrelation, cupti::kRuntime, cupti::kDriver});
  if (kinds == enabled_) return true;
  disable();
  if (converts_clock_) {
    const std::lock_guard data(data_);
    clock_.mark();
  }
  for (const int kind : kinds) {
    const auto result = cupti_.ActivityEnable(kind);
    if (result == cupti::kSuccess) {
      enabled_.push_back(kind);
      continue;
    }
    const char* text = nullptr;
    cupti_.GetResultString(result, &text);
    unusable(std::string("libcupti says ") + (text != nullptr ? text : "an unknown error"));
    return false;
  }
  external_.store(with_operators, std::memory_order_release);
  return true;
}

void Kernels::disable() {
  external_.store(false, std::memory_order_release);
  for (const int kind : enabled_) cupti_.ActivityDisable(kind);
  enabled_.clear();
}

// The pass's records are all here: joins kernels with operators and reports what was lost.
void Kernels::settle() {
  const std::lock_guard data(data_);
  write_batch();
  if (external_) {
    std::vector<spool::Correlation> found;
    for (const auto& [correlation, ns] : kernel_ns_) {
      const auto id = external_ids_.find(correlation);
      if (id == external_ids_.end()) continue;
      const auto step = static_cast<std::uint32_t>(id->second >> 32);
      const auto index = static_cast<std::uint32_t>(id->second);
      found.push_back({correlation, step, index, 0});
      operators_.charge(index, ns);
    }
    operators_.kernels_were_recorded();
    if (!found.empty())
      output_.append(spool::Type::correlation, {reinterpret_cast<const char*>(found.data()),
                                                found.size() * sizeof(spool::Correlation)});
  }
  external_ids_.clear();
  kernel_ns_.clear();
  if (dropped_ > 0) {
    spool::Packer packer;
    output_.append(spool::Type::dropped, packer.put(dropped_).bytes());
    dropped_ = 0;
  }
  if (incomplete_ > 0) {
    output_.diagnostic("warning", "record.incomplete_kernels",
                       std::to_string(incomplete_) +
                           " kernels had not ended when their records were taken, and are missing");
    incomplete_ = 0;
  }
}

std::uint8_t* Kernels::take_buffer(std::size_t& size) noexcept {
  size = 0;
  try {
    const std::lock_guard lock(pool_);
    if (free_.empty()) {
      if (buffers_.size() >= kMostBuffers) return nullptr;  // CUPTI drops, and counts what it drops
      free_.reserve(buffers_.size() + 1);
      buffers_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(kBufferBytes));
      free_.push_back(buffers_.back().get());
    }
    std::uint8_t* buffer = free_.back();
    free_.pop_back();
    size = kBufferBytes;
    return buffer;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void Kernels::completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                        std::size_t valid) noexcept {
  try {
    const std::lock_guard data(data_);
    if (converts_clock_) clock_.mark();
    cupti::Activity* record = nullptr;
    while (valid > 0 && cupti_.ActivityGetNextRecord(buffer, valid, &record) == cupti::kSuccess)
      decode(*record);
    write_batch();
    std::size_t lost = 0;
    if (cupti_.ActivityGetNumDroppedRecords(context, stream, &lost) == cupti::kSuccess)
      dropped_ += lost;
  } catch (const std::exception&) {
    output_.switch_off();
  }
  const std::lock_guard lock(pool_);
  if (buffer != nullptr) free_.push_back(buffer);  // has room: it was in there before
}

void Kernels::decode(const cupti::Activity& record) {
  switch (record.kind) {
    case cupti::kConcurrentKernel: {
      const auto& r = reinterpret_cast<const cupti::KernelActivity&>(record);
      spool::Kernel kernel{};
      kernel.start_ns = r.start;
      kernel.end_ns = r.end;
      kernel.name = name_id(r.name);
      kernel.correlation = r.correlation;
      kernel.stream = r.stream;
      std::memcpy(kernel.grid, r.grid, sizeof kernel.grid);
      std::memcpy(kernel.block, r.block, sizeof kernel.block);
      kernel.device = r.device;
      kernel.kind = static_cast<std::uint32_t>(spool::KernelKind::kernel);
      return add(kernel);
    }
    case cupti::kMemcpy: {
      const auto& r = reinterpret_cast<const cupti::MemcpyActivity&>(record);
      spool::Kernel copy = transfer(r, spool::KernelKind::copy);
      copy.name = plain_name_id(copy_name(r.copy_kind));
      return add(copy);
    }
    case cupti::kMemset: {
      const auto& r = reinterpret_cast<const cupti::MemsetActivity&>(record);
      spool::Kernel set = transfer(r, spool::KernelKind::set);
      set.name = plain_name_id("memset");
      return add(set);
    }
    case cupti::kExternalCorrelation: {
      const auto& r = reinterpret_cast<const cupti::ExternalCorrelationActivity&>(record);
      if (r.external_kind == cupti::kCustom0) external_ids_[r.correlation] = r.external_id;
      return;
    }
    default: return;  // the API calls themselves: their records are there for correlation only
  }
}

void Kernels::add(spool::Kernel kernel) {
  if (kernel.start_ns == 0 || kernel.end_ns < kernel.start_ns) {
    ++incomplete_;
    return;
  }
  if (pass_ == JD_ORDER) kernel_ns_[kernel.correlation] += kernel.end_ns - kernel.start_ns;
  if (converts_clock_) {
    kernel.start_ns = clock_.monotonic(kernel.start_ns);
    kernel.end_ns = clock_.monotonic(kernel.end_ns);
  }
  kernel.pass = pass_;
  batch_.push_back(kernel);
  if (batch_.size() >= kBatch) write_batch();
}

// CUPTI gives the same pointer for the same kernel, but an unloaded module's may come again with
// another name behind it.
std::uint32_t Kernels::name_id(const char* mangled) {
  if (mangled == nullptr) mangled = "?";
  const auto known = by_pointer_.find(mangled);
  if (known != by_pointer_.end() && *known->second.mangled == mangled) return known->second.id;
  const auto found = names_.find(mangled);
  if (found != names_.end()) {
    by_pointer_[mangled] = {&found->first, found->second};
    return found->second;
  }
  const std::uint32_t id = plain_name_id(mangled);
  by_pointer_[mangled] = {&names_.find(mangled)->first, id};
  return id;
}

std::uint32_t Kernels::plain_name_id(std::string_view name) {
  const auto [entry, is_new] =
      names_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    spool::Packer packer;
    output_.append(
        spool::Type::kernel_name,
        packer.put(entry->second).put(std::string_view(demangled(entry->first))).bytes());
  }
  return entry->second;
}

void Kernels::write_batch() {
  if (batch_.empty()) return;
  output_.append(spool::Type::kernel, {reinterpret_cast<const char*>(batch_.data()),
                                       batch_.size() * sizeof(spool::Kernel)});
  batch_.clear();
}

void Kernels::before_fork() noexcept {
  control_.lock();
  data_.lock();
  pool_.lock();
}

void Kernels::after_fork(bool child) noexcept {
  if (child && state_ == State::ready) {
    state_ = State::unusable;
    external_ = false;
    enabled_.clear();
    batch_.clear();
    external_ids_.clear();
    kernel_ns_.clear();
    dropped_ = incomplete_ = 0;
  }
  pool_.unlock();
  data_.unlock();
  control_.unlock();
}

}  // namespace joulediff::record
