// Where this process's records go: PID.spool in the folder JOULEDIFF_SPOOL, opened on first use. A
// forked child opens its own. Off without the variable, and after any trouble with the file.
#pragma once

#include <atomic>
#include <mutex>
#include <string_view>

#include "spool/spool.h"

namespace joulediff::record {

class Output {
 public:
  // Costs one load where the recorder is off, or on.
  bool on() noexcept {
    const State state = state_.load(std::memory_order_acquire);
    return state == State::unopened ? open() : state == State::open && writer_.ok();
  }
  void append(spool::Type type, std::string_view payload) noexcept {
    if (on()) writer_.append(type, payload);
  }
  void fact(std::string_view topic, std::string_view json);
  void diagnostic(std::string_view severity, std::string_view rule, std::string_view message);
  // Both clocks at one moment, for those who stamped with the other one. Opens no spool.
  void clock() noexcept;
  void flush() noexcept {
    if (state_.load(std::memory_order_acquire) == State::open) writer_.flush();
  }
  void switch_off() noexcept;

  void before_fork() noexcept;
  void after_fork(bool child) noexcept;

 private:
  enum class State { unopened, open, off };
  bool open() noexcept;
  void write_clock() noexcept;

  std::mutex mutex_;
  std::atomic<State> state_ = State::unopened;
  spool::Writer writer_;
};

}  // namespace joulediff::record
