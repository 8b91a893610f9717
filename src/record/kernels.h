// Kernels, copies and sets of the GPU, from CUPTI's activity records into the spool.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/clock.h"
#include "record/cupti.h"
#include "record/operators.h"
#include "record/output.h"

namespace joulediff::record {

class Kernels {
 public:
  Kernels(Output& output, Operators& operators) : output_(output), operators_(operators) {}

  // jd_kernels. Whoever calls it has synchronised the device.
  int record(std::uint32_t pass);
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

  // The two callbacks of CUPTI.
  std::uint8_t* take_buffer(std::size_t& size) noexcept;
  void completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                 std::size_t valid) noexcept;

  void before_fork() noexcept;
  void after_fork(bool child) noexcept;

 private:
  // The device is tried for once; a child of a process that used CUPTI cannot use it.
  enum class State { untried, ready, unusable };

  void load();
  void unusable(const std::string& why);
  bool enable(bool with_operators);
  void disable();
  void settle();
  void decode(const cupti::Activity& record);
  void add(spool::Kernel kernel);
  std::uint32_t name_id(const char* mangled);
  std::uint32_t plain_name_id(std::string_view name);
  void write_batch();

  Output& output_;
  Operators& operators_;

  std::mutex control_;  // who switches; never held by a callback
  State state_ = State::untried;
  cupti::Functions cupti_{};
  std::vector<int> enabled_;
  std::atomic<bool> external_ = false;

  std::mutex data_;  // what the callback that completes a buffer works on
  std::uint32_t pass_ = 0;
  bool converts_clock_ = false;
  RealtimeConverter clock_;
  std::vector<spool::Kernel> batch_;
  std::uint64_t dropped_ = 0, incomplete_ = 0;
  std::unordered_map<std::string, std::uint32_t> names_;
  struct Known {
    const std::string* mangled;
    std::uint32_t id;
  };
  std::unordered_map<const char*, Known> by_pointer_;
  std::unordered_map<std::uint32_t, std::uint64_t> external_ids_;  // by correlation
  std::unordered_map<std::uint32_t, std::uint64_t> kernel_ns_;     // by correlation

  std::mutex pool_;
  std::vector<std::unique_ptr<std::uint8_t[]>> buffers_;
  std::vector<std::uint8_t*> free_;
};

}  // namespace joulediff::record
