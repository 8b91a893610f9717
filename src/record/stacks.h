// Native call paths of kernel launches: addresses only, each distinct path once. Symbols are found
// later, elsewhere, from the modules that are written beside them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "record/output.h"

namespace joulediff::record {

class LaunchStacks {
 public:
  explicit LaunchStacks(Output& output) : output_(output) {}

  void begin();
  void end();
  bool on() const { return on_.load(std::memory_order_acquire); }
  // The calling thread is about to launch under this correlation id. Returns how many launches
  // there were since begin(), this one included; 0: not on.
  std::uint64_t launched(std::uint32_t correlation) noexcept;
  // The highest correlation id of a launch since begin().
  std::uint32_t last_correlation();

  void before_fork() noexcept { mutex_.lock(); }
  void after_fork(bool child) noexcept;

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t id = 0;  // 0: free
  };
  std::uint32_t id_of(const std::uint64_t* frames, std::uint32_t count);
  void write_modules();
  void write_batch();

  Output& output_;
  std::atomic<bool> on_ = false;
  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::size_t taken_ = 0;
  std::uint32_t ids_ = 0;
  std::uint64_t launches_ = 0, unnamed_ = 0;
  std::uint32_t last_correlation_ = 0;
  std::vector<spool::LaunchStack> batch_;
  std::set<std::pair<std::uint64_t, std::string>> modules_;  // begin and path of those written
};

}  // namespace joulediff::record
