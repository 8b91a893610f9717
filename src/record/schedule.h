// The pass of each step, in order: warm-up, values, order, a few steps to settle, the trace,
// replay.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "joulediff/record.h"

namespace joulediff::record {

constexpr int kNoPass = -1;
constexpr int kOrderSteps = 3;
constexpr int kSettleSteps = 2;  // unrecorded, so that clocks and allocator settle before the trace

struct Asked {
  bool values = true, order = true, trace = true, replay = true;
  std::uint64_t steps = 20;  // of the trace, at least
  double seconds = 0;        // of the trace, at least
};

class Schedule {
 public:
  explicit Schedule(const Asked& asked);
  // The pass of the coming step, or kNoPass; the trace's seconds count from its first step.
  int next(std::uint64_t now_ns);
  // Names of the passes from `coming` on that next() has not come to the end of.
  std::string missing(int coming) const;

 private:
  static const char* name_of(int pass);

  Asked asked_;
  std::vector<int> plan_;
  std::size_t at_ = 0;
  std::uint64_t traced_ = 0, trace_begin_ = 0;
};

inline Schedule::Schedule(const Asked& asked) : asked_(asked), plan_{JD_WARMUP} {
  if (asked.values) plan_.push_back(JD_VALUES);
  if (asked.order) plan_.insert(plan_.end(), kOrderSteps, JD_ORDER);
  if (asked.trace) {
    plan_.insert(plan_.end(), kSettleSteps, JD_WARMUP);
    plan_.push_back(JD_TRACE);
  }
  if (asked.replay && asked.order) plan_.push_back(JD_REPLAY);
}

inline int Schedule::next(std::uint64_t now_ns) {
  if (at_ < plan_.size() && plan_[at_] == JD_TRACE) {
    if (traced_ == 0) trace_begin_ = now_ns;
    const double seconds = static_cast<double>(now_ns - trace_begin_) * 1e-9;
    if (traced_ < std::max<std::uint64_t>(1, asked_.steps) || seconds < asked_.seconds) {
      ++traced_;
      return JD_TRACE;
    }
    ++at_;
  }
  return at_ < plan_.size() ? plan_[at_++] : kNoPass;
}

inline std::string Schedule::missing(int coming) const {
  std::vector<int> passes{coming};
  passes.insert(passes.end(), plan_.begin() + static_cast<std::ptrdiff_t>(at_), plan_.end());
  std::string list;
  std::string_view last;
  for (const int pass : passes) {
    const std::string_view name = name_of(pass);
    if (name.empty() || name == last) continue;
    list += (list.empty() ? "" : ", ") + std::string(name);
    last = name;
  }
  return list;
}

inline const char* Schedule::name_of(int pass) {
  switch (pass) {
    case JD_VALUES: return "values";
    case JD_ORDER: return "order";
    case JD_TRACE: return "trace";
    case JD_REPLAY: return "replay";
    default: return "";
  }
}

}  // namespace joulediff::record
