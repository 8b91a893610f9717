// Which operator made a call of CUDA's API: the innermost that is open on the calling thread. The
// call's correlation id is that of the kernels, copies and sets it leads to, so of the thousands of
// calls of a step those that led to something are joined with it when the pass is over.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace joulediff::record {

class Callers {
 public:
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  // The calling thread is in this operator from here on. Returns what it was in.
  static std::uint64_t enter(std::uint64_t id) noexcept;

  void begin();
  bool on() const { return on_.load(std::memory_order_acquire); }
  // The calling thread makes a call under this correlation id.
  void called(std::uint32_t correlation) noexcept;

  struct Calls {
    std::unordered_map<std::uint32_t, std::uint64_t> caller;  // by correlation id
    std::uint64_t forgotten = 0;                              // were too many
  };
  // Those since begin(). Ends it.
  Calls end();

  void before_fork() noexcept { mutex_.lock(); }
  void after_fork(bool child) noexcept;

 private:
  std::atomic<bool> on_ = false;
  std::mutex mutex_;
  Calls calls_;
};

}  // namespace joulediff::record
