// The operators of the order pass: their host times, their names, and what their kernels took.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/output.h"

namespace joulediff::record {

class Operators {
 public:
  explicit Operators(Output& output) : output_(output) {}

  // One execution of `index`, begun at begin_ns and ended now.
  void executed(std::uint32_t step, std::uint32_t index, std::uint64_t begin_ns,
                std::uint64_t end_ns);
  void named(std::uint32_t step, std::uint32_t index, const char* name);
  // Kernels that `index` launched took `ns` more.
  void charge(std::uint32_t index, std::uint64_t ns);
  // From now on the seconds of an operator are those of its kernels.
  void kernels_were_recorded();
  // Mean over the steps in which it ran; negative: it never did.
  double seconds(std::uint32_t index);
  // Hands the buffered times to the output.
  void write_out();

  void before_fork() noexcept { mutex_.lock(); }
  void after_fork(bool child) noexcept;

 private:
  struct Total {
    std::uint64_t host_ns = 0, kernel_ns = 0;
    std::uint32_t steps = 0, last_step = 0;
  };

  Output& output_;
  std::mutex mutex_;
  std::vector<spool::OpTime> times_;
  std::unordered_map<std::uint32_t, Total> totals_;
  std::unordered_map<std::uint32_t, std::string> names_;  // the last of each index
  bool kernels_ = false;
};

}  // namespace joulediff::record
