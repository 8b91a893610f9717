#include "record/kernel_records.h"

#include <cstring>
#include <exception>
#include <iterator>
#include <string_view>

#include "joulediff/record.h"

namespace joulediff::record {
namespace {

constexpr std::size_t kBatch = 4096;
// No table grows with the length of the run: the order pass is short, contexts are few in every
// program that is not bent on making more.
constexpr std::size_t kMostJoined = std::size_t{1} << 20;
constexpr std::size_t kMostContexts = 1024;

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

void KernelRecords::start(std::uint32_t cupti_version, bool converts_clock) {
  const std::lock_guard lock(mutex_);
  raw_.start(cupti_version);
  converts_clock_ = converts_clock;
}

void KernelRecords::mark_clock() noexcept {
  const std::lock_guard lock(mutex_);
  if (converts_clock_) clock_.mark();
}

void KernelRecords::begin(std::uint32_t pass, bool joins) {
  const std::lock_guard lock(mutex_);
  pass_ = pass;
  joins_ = joins;
}

void KernelRecords::begin_after(std::uint32_t last_of_order, std::uint32_t pass) {
  const std::lock_guard lock(mutex_);
  order_until_ = last_of_order;
  pass_ = pass;
}

void KernelRecords::expect() {
  const std::lock_guard lock(mutex_);
  delivered_ = 0;
}

bool KernelRecords::silent() {
  const std::lock_guard lock(mutex_);
  return delivered_ == 0 && pass_ != JD_WARMUP;
}

std::optional<double> KernelRecords::share_of_sets() {
  const std::lock_guard lock(mutex_);
  if (order_set_ns_ == 0) return std::nullopt;
  return static_cast<double>(order_set_ns_) / static_cast<double>(order_ns_);
}

void KernelRecords::flush() {
  const std::lock_guard lock(mutex_);
  write_batch();
}

void KernelRecords::settle(const Callers::Calls& calls) {
  const std::lock_guard lock(mutex_);
  write_batch();
  order_until_ = 0;
  std::vector<spool::Correlation> found;
  for (const auto& [correlation, ns] : kernel_ns_) {
    const auto call = calls.caller.find(correlation);
    if (call == calls.caller.end()) continue;
    const auto step = static_cast<std::uint32_t>(call->second >> 32);
    const auto index = static_cast<std::uint32_t>(call->second);
    found.push_back({correlation, step, index, 0});
    operators_.charge(index, ns);
  }
  if (!found.empty())
    output_.append(spool::Type::correlation, {reinterpret_cast<const char*>(found.data()),
                                              found.size() * sizeof(spool::Correlation)});
  if (joins_ && !kernel_ns_.empty()) operators_.kernels_were_recorded();
  kernel_ns_ = {};
  if (dropped_ > 0) {
    spool::Packer packer;
    output_.append(spool::Type::dropped, packer.put(dropped_).bytes());
  }
  if (incomplete_ > 0)
    output_.diagnostic("warning", "record.incomplete_kernels",
                       std::to_string(incomplete_) +
                           " kernels had not ended when their records were taken, and are missing");
  if (const std::uint64_t unjoined = unjoined_ + calls.forgotten; unjoined > 0)
    output_.diagnostic("warning", "record.long_order",
                       std::to_string(unjoined) +
                           " launches of the order pass were too many to be charged to their "
                           "operators: make it shorter");
  if (of_graphs_ > 0)
    output_.fact("manifest", R"({"graph_kernels":")" + std::to_string(of_graphs_) + R"("})");
  dropped_ = incomplete_ = unjoined_ = 0;
}

void KernelRecords::completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                              std::size_t valid) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (converts_clock_) clock_.mark();
    raw_.keep(cupti_, buffer, valid);
    cupti::Activity* record = nullptr;
    while (valid > 0 && cupti_.ActivityGetNextRecord(buffer, valid, &record) == cupti::kSuccess) {
      ++delivered_;
      decode(*record);
    }
    write_batch();
    std::size_t lost = 0;
    if (cupti_.ActivityGetNumDroppedRecords(context, stream, &lost) == cupti::kSuccess)
      dropped_ += lost;
    output_.flush();  // a program that is killed loses no more than CUPTI still has
  } catch (const std::exception&) {
    output_.switch_off();
  }
}

void KernelRecords::decode(const cupti::Activity& record) {
  switch (record.kind) {
    case cupti::kConcurrentKernel: {
      const auto& r = reinterpret_cast<const cupti::KernelActivity&>(record);
      spool::Kernel kernel{};
      kernel.start_ns = r.start;
      kernel.end_ns = r.end;
      kernel.pass = pass_of(r.correlation);
      if (kernel.pass == JD_WARMUP) return;
      kernel.name = names_.of_kernel(r.name);
      kernel.correlation = r.correlation;
      kernel.stream = r.stream;
      std::memcpy(kernel.grid, r.grid, sizeof kernel.grid);
      std::memcpy(kernel.block, r.block, sizeof kernel.block);
      kernel.device = r.device;
      kernel.kind = static_cast<std::uint32_t>(spool::KernelKind::kernel);
      of_graphs_ += r.graph_node != 0;
      return add(kernel, r.context);
    }
    case cupti::kMemcpy: return add_copy(reinterpret_cast<const cupti::MemcpyActivity&>(record));
    case cupti::kMemcpy2:
      return add_copy(reinterpret_cast<const cupti::MemcpyPtoPActivity&>(record));
    case cupti::kMemset: {
      const auto& r = reinterpret_cast<const cupti::MemsetActivity&>(record);
      spool::Kernel set = transfer(r, spool::KernelKind::set);
      set.pass = pass_of(r.correlation);
      if (set.pass == JD_WARMUP) return;
      set.name = names_.of("memset");
      return add(set, r.context);
    }
    case cupti::kSynchronization:
      return add(reinterpret_cast<const cupti::SynchronizationActivity&>(record));
    default: return;
  }
}

template <class Record>
void KernelRecords::add_copy(const Record& r) {
  spool::Kernel copy = transfer(r, spool::KernelKind::copy);
  copy.pass = pass_of(r.correlation);
  if (copy.pass == JD_WARMUP) return;
  copy.name = names_.of(copy_name(r.copy_kind));
  add(copy, r.context);
}

std::uint32_t KernelRecords::pass_of(std::uint32_t correlation) {
  if (order_until_ == 0) return pass_;
  if (correlation > std::uint32_t{1} << 31) order_until_ = 0;  // soon the ids begin anew
  return correlation <= order_until_ ? std::uint32_t{JD_ORDER} : pass_;
}

std::uint64_t KernelRecords::monotonic(std::uint64_t stamp) const {
  return converts_clock_ ? clock_.monotonic(stamp) : stamp;
}

void KernelRecords::add(spool::Kernel kernel, std::uint32_t context) {
  if (kernel.start_ns == 0 || kernel.end_ns < kernel.start_ns) {
    ++incomplete_;
    return;
  }
  const std::uint64_t ns = kernel.end_ns - kernel.start_ns;
  if (kernel.pass == JD_ORDER) {
    order_ns_ += ns;
    if (kernel.kind == static_cast<std::uint32_t>(spool::KernelKind::set)) order_set_ns_ += ns;
  }
  if (joins_) {
    if (kernel_ns_.size() < kMostJoined)
      kernel_ns_[kernel.correlation] += ns;
    else
      ++unjoined_;
  }
  if (last_context_ != context && device_of_context_.size() < kMostContexts) {
    device_of_context_[context] = kernel.device;
    last_context_ = context;
  }
  kernel.start_ns = monotonic(kernel.start_ns);
  kernel.end_ns = monotonic(kernel.end_ns);
  batch_.add(kernel);
  if (batch_.count() >= kBatch) write_batch();
}

void KernelRecords::add(const cupti::SynchronizationActivity& r) {
  const std::uint32_t pass = pass_of(r.correlation);
  if (pass == JD_WARMUP || r.start == 0 || r.end < r.start) return;
  const auto device = device_of_context_.find(r.context);
  const auto kind = r.type >= 0 && r.type <= 4 ? static_cast<std::uint32_t>(r.type) : 0;
  waits_.push_back({monotonic(r.start), monotonic(r.end), kind, r.stream, pass,
                    device != device_of_context_.end() ? device->second : spool::kNone});
  if (waits_.size() >= kBatch) write_batch();
}

void KernelRecords::write_batch() {
  if (batch_.count() > 0) output_.append(spool::Type::kernel, batch_.bytes());
  if (!waits_.empty())
    output_.append(spool::Type::synchronisation, {reinterpret_cast<const char*>(waits_.data()),
                                                  waits_.size() * sizeof(spool::Synchronisation)});
  batch_.clear();
  waits_.clear();
}

void KernelRecords::after_fork(bool child) noexcept {
  if (child) {
    joins_ = false;
    batch_.clear();
    waits_.clear();
    kernel_ns_.clear();
    dropped_ = incomplete_ = unjoined_ = of_graphs_ = 0;
  }
  mutex_.unlock();
}

}  // namespace joulediff::record
