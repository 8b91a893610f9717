// Kernels, copies, sets and waits of the GPU, from CUPTI's activity records into the spool.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <semaphore.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/buffers.h"
#include "record/clock.h"
#include "record/cupti.h"
#include "record/operators.h"
#include "record/output.h"
#include "record/raw_capture.h"
#include "record/stacks.h"
#include "record/subscription.h"
#include "spool/kernels.h"

namespace joulediff::record {

class Kernels {
 public:
  Kernels(Output& output, Operators& operators);

  // jd_kernels. Whoever calls it has synchronised the device.
  int record(std::uint32_t pass);
  // CUDA is coming up. Attended, somebody calls record(); else the program is recorded as it is:
  // first an order pass, then, without a pause, a trace of the rest.
  void inject(bool attended, void (*on_first_launch)());
  // The process ends.
  void finish();
  // What is complete, without asking that the device be synchronised.
  void flush();

  // True: the calling thread's launches are now charged to `id`, until pop().
  bool push(std::uint64_t id) noexcept {
    return external_.load(std::memory_order_acquire) &&
           cupti_.ActivityPushExternalCorrelationId(cupti::kCustom0, id) == cupti::kSuccess;
  }
  void pop() noexcept {
    std::uint64_t id = 0;
    cupti_.ActivityPopExternalCorrelationId(cupti::kCustom0, &id);
  }

  // The callbacks of CUPTI.
  std::uint8_t* take_buffer(std::size_t& size) noexcept;
  void completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                 std::size_t valid) noexcept;
  void launching(std::uint32_t correlation) noexcept;

  void before_fork() noexcept;
  void after_fork(bool child) noexcept;

 private:
  // The device is tried for once; a child of a process that used CUPTI cannot use it.
  enum class State { untried, ready, unusable };
  // The order pass of a program that makes none: until enough was launched, or a while after.
  enum class Stretch { none, waits, over };

  void load();
  void unusable(const std::string& why);
  void taken_by(const std::string& other);
  bool is_ours();
  bool begin(std::uint32_t pass, bool with_operators);
  bool enable(const std::vector<int>& kinds);
  void disable();
  bool end_pass();
  void begin_unattended();
  void watch_stretch();
  void end_stretch();
  void settle();
  void write_devices();
  void decode(const cupti::Activity& record);
  void add(spool::Kernel kernel, std::uint32_t context);
  template <class Record>
  void add_copy(const Record& record);
  void add(const cupti::SynchronizationActivity& record);
  std::uint32_t pass_of(std::uint32_t correlation);
  std::uint64_t monotonic(std::uint64_t stamp) const;
  std::uint32_t name_id(const char* mangled);
  std::uint32_t plain_name_id(std::string_view name);
  void write_batch();

  Output& output_;
  Operators& operators_;
  LaunchStacks stacks_;
  Buffers buffers_;

  std::mutex control_;  // who switches; never held by a callback
  State state_ = State::untried;
  Stretch stretch_ = Stretch::none;
  bool unattended_ = false;  // what is on was begun because nobody attends
  cupti::Functions cupti_{};
  Subscription subscription_;
  std::vector<int> enabled_;
  bool devices_written_ = false;
  void (*on_first_launch_)() = nullptr;
  std::atomic<bool> external_ = false;
  std::atomic<std::uint64_t> stretch_launches_ = 0;
  sem_t launched_{};  // posted at the first launch of the stretch and when there are enough

  std::mutex data_;  // what the callback that completes a buffer works on
  RawCapture raw_;
  std::uint32_t pass_ = 0;         // 0: records are thrown away
  std::uint32_t order_until_ = 0;  // the last correlation id of the stretch
  std::uint64_t delivered_ = 0;    // records since the last flush
  bool converts_clock_ = false;
  RealtimeConverter clock_;
  spool::KernelBatch batch_;
  std::vector<spool::Synchronisation> waits_;
  std::uint64_t dropped_ = 0, incomplete_ = 0, unjoined_ = 0, of_graphs_ = 0;
  std::uint32_t next_name_ = 0;
  std::unordered_map<std::string, std::uint32_t> names_;
  struct Known {
    const std::string* mangled;
    std::uint32_t id;
  };
  std::unordered_map<const char*, Known> by_pointer_;
  std::unordered_map<std::uint32_t, std::uint32_t> device_of_context_;
  std::uint32_t last_context_ = spool::kNone;
  std::unordered_map<std::uint32_t, std::uint64_t> external_ids_;  // by correlation
  std::unordered_map<std::uint32_t, std::uint64_t> kernel_ns_;     // by correlation
};

}  // namespace joulediff::record
