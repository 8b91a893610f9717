// CUPTI serves whoever asked last, so each switch asks first whether another tool is there.
//
// A CUDA graph gives a record for each of its kernels only if kernel records were on when it was
// instantiated. So where somebody will make the passes, they are on from the moment CUDA comes up,
// and are thrown away until the first pass.

#include "record/kernels.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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

void on_api(void* kernels, int domain, std::uint32_t function, const void* data) noexcept {
  const auto& call = *static_cast<const cupti::CallbackData*>(data);
  if (call.site == cupti::kApiEnter)
    static_cast<Kernels*>(kernels)->called(domain, function, call.correlation);
}

// CUPTI calls into this library until the process ends, also when an engine has closed it.
void stay_loaded() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&buffer_requested), &self) != 0 && self.dli_fname != nullptr)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
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

// A kernel's record is what a recording cannot do without.
bool is_optional(int kind) {
  return kind == cupti::kMemcpy2 || kind == cupti::kSynchronization;
}

bool has(const std::vector<int>& kinds, int kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

Kernels::Kernels(Output& output, Operators& operators)
    : output_(output), stacks_(output), records_(output, operators, cupti_) {
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
  if (!wanted && records_.pass() == JD_WARMUP) return 0;  // graphs are yet to be instantiated
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
  records_.flush();
}

void Kernels::unusable(const std::string& why) {
  disable();
  state_ = State::unusable;
  const bool has_gpu = access("/dev/nvidiactl", F_OK) == 0;
  const char* const chosen = std::getenv("JOULEDIFF_CUPTI");
  const bool expected = has_gpu || (chosen != nullptr && *chosen != '\0');
  output_.diagnostic(
      has_gpu ? "warning" : "note", "record.no_kernels",
      expected ? "no kernels are recorded: " + why : "no NVIDIA GPU here, so no kernels");
}

// Switches nothing off: what is on may be the other's by now.
void Kernels::taken_by(const std::string& other) {
  state_ = State::unusable;
  stretch_ = Stretch::over;
  records_.begin(records_.pass(), false);
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
  const bool own_clock = cupti_.ActivityRegisterTimestampCallback != nullptr &&
                         cupti_.ActivityRegisterTimestampCallback(now_ns) == cupti::kSuccess;
  records_.start(version, !own_clock);
  const auto result = cupti_.ActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result != cupti::kSuccess) unusable("libcupti refused the callbacks");
}

bool Kernels::begin(std::uint32_t pass, bool with_operators) {
  if (!is_ours()) return false;
  records_.begin(pass, with_operators);
  if (!enable(kinds_of(pass))) return false;
  if (pass != JD_ORDER) {
    subscription_.release(cupti_);
  } else if (!subscription_.held()) {
    output_.diagnostic(
        "warning", "record.no_callbacks",
        "libcupti tells of no calls: kernels have no native stacks and no operators");
  } else {
    stacks_.begin();
    if (with_operators) callers_.begin();
    with_operators ? subscription_.watch_calls(cupti_) : subscription_.watch_launches(cupti_);
  }
  return true;
}

// No API records: they can double the time of a launch-bound program, and callbacks tell as much.
// A trace leaves out sets that take next to nothing: on an H200 the record of a set of some bytes
// costs the device 0.9 us, a kernel's 0.25 us (bench/cupti_cost.py).
std::vector<int> Kernels::kinds_of(std::uint32_t pass) {
  constexpr double kLittle = 0.01;
  static const bool traces_waits = std::getenv("JOULEDIFF_TRACE_WAITS") != nullptr;
  std::vector<int> kinds{cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemcpy2};
  const auto share = pass == JD_TRACE ? records_.share_of_sets() : std::nullopt;
  if (!share || *share >= kLittle) {
    kinds.push_back(cupti::kMemset);
  } else if (!std::exchange(said_without_sets_, true)) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "sets of memory, %.2g %% of the device's time in the order pass, are not traced: "
                  "to record them would take as long again",
                  100 * *share);
    output_.diagnostic("note", "record.sets_untraced", text);
  }
  if (pass == JD_ORDER || (pass == JD_TRACE && traces_waits))
    kinds.push_back(cupti::kSynchronization);
  return kinds;
}

bool Kernels::enable(const std::vector<int>& kinds) {
  if (enabled_.empty()) records_.mark_clock();
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
  for (const int kind : enabled_) cupti_.ActivityDisable(kind);
  enabled_.clear();
  subscription_.release(cupti_);
  records_.begin(JD_WARMUP, false);
}

// Takes what the pass has left. False: another tool has it.
bool Kernels::end_pass() {
  if (!is_ours()) return false;
  if (stacks_.on()) subscription_.watch_nothing(cupti_);
  records_.expect();
  cupti_.ActivityFlushAll(cupti::kForced);
  // CUPTI gives every buffer back, unless somebody else has registered for them: the last one to
  // do so gets all.
  if (records_.silent() && buffers_.outside() > 0) {
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
  subscription_.watch_nothing(cupti_);
  subscription_.release(cupti_);
  stacks_.end();
  const bool trace = is_wanted("trace");
  records_.begin_after(stacks_.last_correlation(), trace ? JD_TRACE : JD_WARMUP);
  cupti_.ActivityFlushAll(0);  // what was complete tells which kinds the trace needs
  if (trace)
    enable(kinds_of(JD_TRACE));
  else
    disable();
  output_.clock();
}

void Kernels::called(int domain, std::uint32_t function, std::uint32_t correlation) noexcept {
  callers_.called(correlation);
  if (!cupti::launches(domain, function)) return;
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

// All that was launched in the pass has been delivered.
void Kernels::settle() {
  stacks_.end();
  write_devices();
  records_.settle(callers_.end());
}

std::uint8_t* Kernels::take_buffer(std::size_t& size) noexcept {
  std::uint8_t* const buffer = buffers_.take();
  size = buffer != nullptr ? Buffers::kBytes : 0;
  return buffer;
}

void Kernels::completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                        std::size_t valid) noexcept {
  records_.completed(context, stream, buffer, valid);
  buffers_.give_back(buffer);
}

void Kernels::before_fork() noexcept {
  control_.lock();
  stacks_.before_fork();
  callers_.before_fork();
  records_.before_fork();
  buffers_.before_fork();
}

void Kernels::after_fork(bool child) noexcept {
  if (child && state_ != State::untried) {
    state_ = State::unusable;
    stretch_ = Stretch::over;
    enabled_.clear();
    subscription_.forget();
  }
  buffers_.after_fork();
  records_.after_fork(child);
  callers_.after_fork(child);
  stacks_.after_fork(child);
  control_.unlock();
}

}  // namespace joulediff::record
