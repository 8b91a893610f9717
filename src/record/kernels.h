// Kernels, copies, sets and waits of the GPU, from CUPTI's activity records into the spool.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <semaphore.h>
#include <string>
#include <vector>

#include "record/buffers.h"
#include "record/callers.h"
#include "record/cupti.h"
#include "record/kernel_records.h"
#include "record/operators.h"
#include "record/output.h"
#include "record/stacks.h"
#include "record/subscription.h"

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

  // The callbacks of CUPTI.
  std::uint8_t* take_buffer(std::size_t& size) noexcept;
  void completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                 std::size_t valid) noexcept;
  void called(int domain, std::uint32_t function, std::uint32_t correlation) noexcept;

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
  std::vector<int> kinds_of(std::uint32_t pass);
  bool enable(const std::vector<int>& kinds);
  void disable();
  bool end_pass();
  void begin_unattended();
  void watch_stretch();
  void end_stretch();
  void settle();
  void write_devices();

  Output& output_;
  LaunchStacks stacks_;
  Callers callers_;
  Buffers buffers_;

  std::mutex control_;  // who switches; never held by a callback
  State state_ = State::untried;
  Stretch stretch_ = Stretch::none;
  bool unattended_ = false;  // what is on was begun because nobody attends
  cupti::Functions cupti_{};
  Subscription subscription_;
  std::vector<int> enabled_;
  bool devices_written_ = false, said_without_sets_ = false;
  void (*on_first_launch_)() = nullptr;
  std::atomic<std::uint64_t> stretch_launches_ = 0;
  sem_t launched_{};  // posted at the first launch of the stretch and when there are enough

  KernelRecords records_;
};

}  // namespace joulediff::record
