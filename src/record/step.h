// Which step of an engine makes which pass, and what an operator does in each.
//
// This and what it uses (values, replay, observe) is a client of the C ABI below it, as the
// framework's plug-ins are, and follows the same schedule: warm-up, values, order, a few steps to
// settle, the trace, replay.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "record/replay.h"
#include "record/schedule.h"
#include "record/values.h"

namespace joulediff::record {

class Stepper {
 public:
  int begin(const char* inputs);
  void end();
  bool wanted();
  int pass() const { return pass_.load(std::memory_order_relaxed); }
  void run(const jd_op& op, void (*execute)(void*), void* context);
  void finish();           // the program ends
  void forked() noexcept;  // in the child: it has our state, but is not the recording

 private:
  bool start();
  bool refused();
  void end_step();
  void tell_step(int pass);
  void enter(int pass);
  void leave();
  void recorded(const jd_op& op, void (*execute)(void*), void* context);
  void note(std::vector<Described>& seen, const jd_op& op) const;
  void compare_orders();
  template <class Body>
  void guarded(Body body) noexcept;

  std::mutex mutex_;                    // of begin, end and finish
  std::unique_ptr<Schedule> schedule_;  // none: not begun
  std::atomic<int> pass_ = kNoPass;     // of the open step
  std::atomic<bool> off_ = false;
  std::atomic<std::thread::id> owner_;  // who began the step
  std::atomic<bool> others_told_ = false;
  std::atomic<bool> operator_runs_ = false;  // of the open step: it cannot end meanwhile
  bool early_told_ = false;
  int entered_ = kNoPass;    // the pass that is made now
  int following_ = kNoPass;  // of the coming step
  int empty_ = 0;            // steps of the values pass that ran no operator
  std::uint32_t step_ = 0, index_ = 0;
  std::uint64_t begin_ns_ = 0;
  std::string inputs_;
  std::unique_ptr<Values> values_;
  std::unique_ptr<Replay> replay_;
  std::vector<Described> seen_in_values_, seen_in_order_;
  bool noting_ = false;  // the first step of the order pass
};

}  // namespace joulediff::record
