// CUPTI fills buffers of ours and hands them back on threads of its own. The order pass asks it
// also for external correlation: for each API call made while an operator's number is on the
// thread's stack, a record (operator, correlation id) comes beside the kernels with that
// correlation id, in any order and in other buffers. Both are kept in tables until the pass is over
// and are then joined, so that of thousands of API calls only those that launched something reach
// the spool. The trace pass asks for kernels alone: API records can double the time of a
// launch-bound program.
//
// A CUDA graph gives a record for each of its kernels only if kernel records were on when it was
// instantiated. So where somebody will make the passes, they are on from the moment CUDA comes up,
// and are thrown away until the first pass.

#include "record/kernels.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <exception>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "joulediff/record.h"
#include "record/devices.h"

namespace joulediff::record {
namespace {

constexpr std::size_t kFirstBuffers = 4;
constexpr std::size_t kBatch = 4096;
// No table grows with the length of the run: the order pass is short, names and contexts are few
// in every program that is not bent on making more.
constexpr std::size_t kMostJoined = std::size_t{1} << 20;
constexpr std::size_t kMostNames = std::size_t{1} << 14;
constexpr std::size_t kMostContexts = 1024;

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

void on_api(void* kernels, int, std::uint32_t, const void* data) noexcept {
  const auto& call = *static_cast<const cupti::CallbackData*>(data);
  if (call.site == cupti::kApiEnter) static_cast<Kernels*>(kernels)->launching(call.correlation);
}

// CUPTI calls into this library until the process ends, also when an engine has closed it.
void stay_loaded() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&buffer_requested), &self) != 0 && self.dli_fname != nullptr)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

std::string demangled(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;  // a name of C would be taken for a type
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

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Whether the launcher wants this pass; without a word from it, all are wanted.
bool is_wanted(std::string_view pass) {
  const char* const variable = std::getenv("JOULEDIFF_PASSES");
  if (variable == nullptr || *variable == '\0') return true;
  std::string_view rest = variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (rest.substr(0, end) == pass) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::vector<int> kinds_of(std::uint32_t pass, bool with_operators) {
  static const bool traces_waits = std::getenv("JOULEDIFF_TRACE_WAITS") != nullptr;
  std::vector<int> kinds{cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemcpy2, cupti::kMemset};
  if (pass == JD_ORDER || (pass == JD_TRACE && traces_waits))
    kinds.push_back(cupti::kSynchronization);
  if (with_operators)
    kinds.insert(kinds.end(), {cupti::kExternalCorrelation, cupti::kRuntime, cupti::kDriver});
  return kinds;
}

// A kernel's record is what a recording cannot do without.
bool is_optional(int kind) {
  return kind == cupti::kMemcpy2 || kind == cupti::kSynchronization;
}

bool has(const std::vector<int>& kinds, int kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

Kernels::Kernels(Output& output, Operators& operators)
    : output_(output), operators_(operators), stacks_(output) {
  sem_init(&launched_, 0, 0);
}

int Kernels::record(std::uint32_t pass) {
  const std::lock_guard lock(control_);
  const bool wanted = pass == JD_ORDER || pass == JD_TRACE;
  if (state_ == State::untried && wanted && output_.on()) load();
  if (state_ != State::ready) return 0;
  if (stretch_ == Stretch::waits) end_stretch();
  if (!wanted && std::exchange(unattended_, false)) {
    // Somebody attends from here on. Kernel records stay on: graphs are yet to be instantiated.
    return end_pass() ? begin(JD_WARMUP, false), 0 : 0;
  }
  unattended_ = false;
  if (!wanted && pass_ == JD_WARMUP) return 0;  // graphs are yet to be instantiated
  if (!enabled_.empty() && !end_pass()) return 0;
  write_devices();
  if (wanted) return begin(pass, pass == JD_ORDER) ? 1 : 0;
  disable();
  return 0;
}

void Kernels::inject(bool attended, void (*on_first_launch)()) {
  const std::lock_guard lock(control_);
  on_first_launch_ = on_first_launch;
  const bool order = is_wanted("order"), trace = is_wanted("trace");
  if (state_ != State::untried || !(order || trace) || !output_.on()) return;
  load();
  if (state_ != State::ready) return;
  if (attended)
    begin(JD_WARMUP, false);
  else if (order)
    begin_unattended();
  else
    begin(JD_TRACE, false);
  unattended_ = !attended;
}

void Kernels::finish() {
  const std::lock_guard lock(control_);
  if (state_ != State::ready) return;
  stretch_ = Stretch::over;
  if (end_pass()) disable();
  state_ = State::unusable;
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

// Switches nothing off: what is on may be the other's by now.
void Kernels::taken_by(const std::string& other) {
  state_ = State::unusable;
  stretch_ = Stretch::over;
  external_ = false;
  enabled_.clear();
  subscription_.release(cupti_);
  settle();
  output_.diagnostic("warning", "record.other_subscriber",
                     (other.empty() ? std::string("another tool") : other) +
                         " uses CUPTI in this process: its kernels are not recorded from here on, "
                         "only power is; run it without that tool, or join that tool's own trace "
                         "by the recorded clocks");
}

bool Kernels::is_ours() {
  std::string other;
  if (subscription_.acquire(cupti_, on_api, this, other) != Subscription::Answer::others)
    return true;
  taken_by(other);
  return false;
}

void Kernels::load() {
  std::string why;
  std::uint32_t version = 0;
  if (!load_cupti(cupti_, version, why)) return unusable(why);
  stay_loaded();
  receiver = this;
  state_ = State::ready;
  if (!is_ours()) return;  // before anything that the other would feel
  buffers_.reserve(kFirstBuffers);
  {
    const std::lock_guard data(data_);
    raw_.start(version);
    converts_clock_ = cupti_.ActivityRegisterTimestampCallback == nullptr ||
                      cupti_.ActivityRegisterTimestampCallback(now_ns) != cupti::kSuccess;
  }
  const auto result = cupti_.ActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result != cupti::kSuccess) unusable("libcupti refused the callbacks");
}

bool Kernels::begin(std::uint32_t pass, bool with_operators) {
  if (!is_ours()) return false;
  {
    const std::lock_guard data(data_);
    pass_ = pass;
  }
  if (!enable(kinds_of(pass, with_operators))) return false;
  external_.store(with_operators, std::memory_order_release);
  if (pass == JD_ORDER && subscription_.held()) {
    stacks_.begin();
    subscription_.watch_launches(cupti_, true);
  } else {
    subscription_.release(cupti_);
  }
  return true;
}

bool Kernels::enable(const std::vector<int>& kinds) {
  if (enabled_.empty() && converts_clock_) {
    const std::lock_guard data(data_);
    clock_.mark();
  }
  for (const int kind : enabled_)
    if (!has(kinds, kind)) cupti_.ActivityDisable(kind);
  std::erase_if(enabled_, [&](int kind) { return !has(kinds, kind); });
  for (const int kind : kinds) {
    if (has(enabled_, kind)) continue;
    const auto result = cupti_.ActivityEnable(kind);
    if (result == cupti::kSuccess) {
      enabled_.push_back(kind);
    } else if (result == cupti::kMultipleSubscribers) {
      taken_by("");
      return false;
    } else if (!is_optional(kind)) {
      const char* text = nullptr;
      cupti_.GetResultString(result, &text);
      unusable(std::string("libcupti says ") + (text != nullptr ? text : "an unknown error"));
      return false;
    }
  }
  return true;
}

void Kernels::disable() {
  external_.store(false, std::memory_order_release);
  for (const int kind : enabled_) cupti_.ActivityDisable(kind);
  enabled_.clear();
  subscription_.release(cupti_);
  const std::lock_guard data(data_);
  pass_ = JD_WARMUP;
}

// Takes what the pass has left. False: another tool has it.
bool Kernels::end_pass() {
  if (!is_ours()) return false;
  if (stacks_.on()) subscription_.watch_launches(cupti_, false);
  {
    const std::lock_guard data(data_);
    delivered_ = 0;
  }
  cupti_.ActivityFlushAll(cupti::kForced);
  bool silent = false;
  {
    const std::lock_guard data(data_);
    silent = delivered_ == 0 && pass_ != JD_WARMUP;
  }
  // CUPTI gives every buffer back, unless somebody else has registered for them: the last one to
  // do so gets all.
  if (silent && buffers_.outside() > 0) {
    taken_by("");
    return false;
  }
  settle();
  return true;
}

void Kernels::begin_unattended() {
  if (!begin(JD_ORDER, false)) return;
  if (!stacks_.on()) {  // no callbacks, so nothing tells when to end
    begin(JD_TRACE, false);
    return;
  }
  stretch_ = Stretch::waits;
  stretch_launches_ = std::max<std::uint64_t>(number_of("JOULEDIFF_ORDER_LAUNCHES", 20'000), 1);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals are not this thread's
  try {
    std::thread([this] { watch_stretch(); }).detach();
  } catch (const std::exception&) {
    end_stretch();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A thread of its own: in a callback of CUPTI, CUPTI had better not be switched.
void Kernels::watch_stretch() {
  try {
    while (sem_wait(&launched_) != 0) continue;
    {
      const std::lock_guard lock(control_);
      if (stretch_ == Stretch::waits) write_devices();
    }
    on_first_launch_();
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += static_cast<time_t>(number_of("JOULEDIFF_ORDER_SECONDS", 2));
    sem_clockwait(&launched_, CLOCK_MONOTONIC, &until);
    const std::lock_guard lock(control_);
    if (stretch_ == Stretch::waits) end_stretch();
    output_.flush();
  } catch (const std::exception&) {
    output_.switch_off();
  }
}

// The program goes on launching meanwhile: which pass a kernel belongs to, its correlation id
// tells.
void Kernels::end_stretch() {
  stretch_ = Stretch::over;
  subscription_.watch_launches(cupti_, false);
  subscription_.release(cupti_);
  stacks_.end();
  const bool trace = is_wanted("trace");
  const std::uint32_t last = stacks_.last_correlation();
  {
    const std::lock_guard data(data_);
    order_until_ = last;
    pass_ = trace ? JD_TRACE : JD_WARMUP;
  }
  if (trace)
    enable(kinds_of(JD_TRACE, false));
  else
    disable();
  output_.clock();
}

void Kernels::launching(std::uint32_t correlation) noexcept {
  const std::uint64_t launches = stacks_.launched(correlation);
  if (launches == 1) sem_post(&launched_);
  if (launches == stretch_launches_) sem_post(&launched_);
}

void Kernels::write_devices() {
  if (devices_written_) return;
  for (const Device& device : devices_of_process()) {
    spool::Packer packer;
    packer.put(device.ordinal);
    packer.put(std::string_view(device.uuid)).put(std::string_view(device.name));
    output_.append(spool::Type::device, packer.bytes());
    devices_written_ = true;
  }
}

// The pass's records are all here: joins kernels with operators and reports what was lost.
void Kernels::settle() {
  stacks_.end();
  write_devices();
  const std::lock_guard data(data_);
  write_batch();
  order_until_ = 0;
  if (!external_ids_.empty() || !kernel_ns_.empty()) {
    std::vector<spool::Correlation> found;
    for (const auto& [correlation, ns] : kernel_ns_) {
      const auto id = external_ids_.find(correlation);
      if (id == external_ids_.end()) continue;
      const auto step = static_cast<std::uint32_t>(id->second >> 32);
      const auto index = static_cast<std::uint32_t>(id->second);
      found.push_back({correlation, step, index, 0});
      operators_.charge(index, ns);
    }
    if (!found.empty())
      output_.append(spool::Type::correlation, {reinterpret_cast<const char*>(found.data()),
                                                found.size() * sizeof(spool::Correlation)});
    external_ids_ = {};
    kernel_ns_ = {};
  }
  if (external_) operators_.kernels_were_recorded();
  if (dropped_ > 0) {
    spool::Packer packer;
    output_.append(spool::Type::dropped, packer.put(dropped_).bytes());
  }
  if (incomplete_ > 0)
    output_.diagnostic("warning", "record.incomplete_kernels",
                       std::to_string(incomplete_) +
                           " kernels had not ended when their records were taken, and are missing");
  if (unjoined_ > 0)
    output_.diagnostic("warning", "record.long_order",
                       std::to_string(unjoined_) +
                           " launches of the order pass were too many to be charged to their "
                           "operators: make it shorter");
  if (of_graphs_ > 0)
    output_.fact("manifest", R"({"graph_kernels":")" + std::to_string(of_graphs_) + R"("})");
  dropped_ = incomplete_ = unjoined_ = 0;
}

std::uint8_t* Kernels::take_buffer(std::size_t& size) noexcept {
  std::uint8_t* const buffer = buffers_.take();
  size = buffer != nullptr ? Buffers::kBytes : 0;
  return buffer;
}

void Kernels::completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                        std::size_t valid) noexcept {
  try {
    const std::lock_guard data(data_);
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
  buffers_.give_back(buffer);
}

void Kernels::decode(const cupti::Activity& record) {
  switch (record.kind) {
    case cupti::kConcurrentKernel: {
      const auto& r = reinterpret_cast<const cupti::KernelActivity&>(record);
      spool::Kernel kernel{};
      kernel.start_ns = r.start;
      kernel.end_ns = r.end;
      kernel.pass = pass_of(r.correlation);
      if (kernel.pass == JD_WARMUP) return;
      kernel.name = name_id(r.name);
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
      set.name = plain_name_id("memset");
      return add(set, r.context);
    }
    case cupti::kSynchronization:
      return add(reinterpret_cast<const cupti::SynchronizationActivity&>(record));
    case cupti::kExternalCorrelation: {
      const auto& r = reinterpret_cast<const cupti::ExternalCorrelationActivity&>(record);
      if (r.external_kind != cupti::kCustom0) return;
      if (external_ids_.size() < kMostJoined)
        external_ids_[r.correlation] = r.external_id;
      else
        ++unjoined_;
      return;
    }
    default: return;  // the API calls themselves: their records are there for correlation only
  }
}

template <class Record>
void Kernels::add_copy(const Record& r) {
  spool::Kernel copy = transfer(r, spool::KernelKind::copy);
  copy.pass = pass_of(r.correlation);
  if (copy.pass == JD_WARMUP) return;
  copy.name = plain_name_id(copy_name(r.copy_kind));
  add(copy, r.context);
}

std::uint32_t Kernels::pass_of(std::uint32_t correlation) {
  if (order_until_ == 0) return pass_;
  if (correlation > std::uint32_t{1} << 31) order_until_ = 0;  // soon the ids begin anew
  return correlation <= order_until_ ? std::uint32_t{JD_ORDER} : pass_;
}

std::uint64_t Kernels::monotonic(std::uint64_t stamp) const {
  return converts_clock_ ? clock_.monotonic(stamp) : stamp;
}

void Kernels::add(spool::Kernel kernel, std::uint32_t context) {
  if (kernel.start_ns == 0 || kernel.end_ns < kernel.start_ns) {
    ++incomplete_;
    return;
  }
  if (external_) {
    if (kernel_ns_.size() < kMostJoined)
      kernel_ns_[kernel.correlation] += kernel.end_ns - kernel.start_ns;
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

void Kernels::add(const cupti::SynchronizationActivity& r) {
  const std::uint32_t pass = pass_of(r.correlation);
  if (pass == JD_WARMUP || r.start == 0 || r.end < r.start) return;
  const auto device = device_of_context_.find(r.context);
  const auto kind = r.type >= 0 && r.type <= 4 ? static_cast<std::uint32_t>(r.type) : 0;
  waits_.push_back({monotonic(r.start), monotonic(r.end), kind, r.stream, pass,
                    device != device_of_context_.end() ? device->second : spool::kNone});
  if (waits_.size() >= kBatch) write_batch();
}

// CUPTI gives the same pointer for the same kernel, but an unloaded module's may come again with
// another name behind it.
std::uint32_t Kernels::name_id(const char* mangled) {
  if (mangled == nullptr) mangled = "?";
  const auto known = by_pointer_.find(mangled);
  if (known != by_pointer_.end() && *known->second.mangled == mangled) return known->second.id;
  if (by_pointer_.size() >= kMostNames) by_pointer_.clear();
  const std::uint32_t id = plain_name_id(mangled);
  by_pointer_[mangled] = {&names_.find(mangled)->first, id};
  return id;
}

std::uint32_t Kernels::plain_name_id(std::string_view name) {
  const std::string mangled(name);
  if (const auto known = names_.find(mangled); known != names_.end()) return known->second;
  if (names_.size() >= kMostNames) {  // those that come again are written again
    by_pointer_.clear();
    names_.clear();
  }
  const std::uint32_t id = next_name_++;
  names_.emplace(mangled, id);
  spool::Packer packer;
  output_.append(spool::Type::kernel_name,
                 packer.put(id).put(std::string_view(demangled(mangled))).bytes());
  return id;
}

void Kernels::write_batch() {
  if (batch_.count() > 0) output_.append(spool::Type::kernel, batch_.bytes());
  if (!waits_.empty())
    output_.append(spool::Type::synchronisation, {reinterpret_cast<const char*>(waits_.data()),
                                                  waits_.size() * sizeof(spool::Synchronisation)});
  batch_.clear();
  waits_.clear();
}

void Kernels::before_fork() noexcept {
  control_.lock();
  stacks_.before_fork();
  data_.lock();
  buffers_.before_fork();
}

void Kernels::after_fork(bool child) noexcept {
  if (child && state_ != State::untried) {
    state_ = State::unusable;
    stretch_ = Stretch::over;
    external_ = false;
    enabled_.clear();
    subscription_.forget();
    batch_.clear();
    waits_.clear();
    external_ids_.clear();
    kernel_ns_.clear();
    dropped_ = incomplete_ = unjoined_ = of_graphs_ = 0;
  }
  buffers_.after_fork();
  data_.unlock();
  stacks_.after_fork(child);
  control_.unlock();
}

}  // namespace joulediff::record
