// CUPTI serves one subscriber at a time. Holding its subscription shows that nobody else (Kineto,
// Nsight) records this process, and gives callbacks for API calls. It is held no longer than
// needed: as long as we hold it, a profiler of the program's own cannot start.
#pragma once

#include <string>

#include "record/cupti_abi.h"

namespace joulediff::record {

class Subscription {
 public:
  enum class Answer { ours, others, unknown };

  // `other` becomes the name of who holds it, where CUPTI tells.
  Answer acquire(const cupti::Functions& cupti, cupti::Callback callback, void* user,
                 std::string& other);
  bool held() const { return subscriber_ != nullptr; }
  // Callbacks on every API call, or on those alone that launch kernels.
  void watch_calls(const cupti::Functions& cupti);
  void watch_launches(const cupti::Functions& cupti);
  void watch_nothing(const cupti::Functions& cupti);
  void release(const cupti::Functions& cupti);
  // In a forked child, which has no CUPTI.
  void forget() noexcept { subscriber_ = nullptr; }

 private:
  cupti::Subscriber subscriber_ = nullptr;
};

}  // namespace joulediff::record
