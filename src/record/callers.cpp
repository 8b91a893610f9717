#include "record/callers.h"

#include <exception>
#include <utility>

namespace joulediff::record {
namespace {

// The order pass is short; a program that is bent on calls does not fill the memory with them.
constexpr std::size_t kMostCalls = std::size_t{1} << 20;

thread_local std::uint64_t operator_of_thread = Callers::kNobody;

}  // namespace

std::uint64_t Callers::enter(std::uint64_t id) noexcept {
  return std::exchange(operator_of_thread, id);
}

void Callers::begin() {
  const std::lock_guard lock(mutex_);
  calls_ = {};
  on_ = true;
}

void Callers::called(std::uint32_t correlation) noexcept {
  if (!on() || operator_of_thread == kNobody) return;
  const std::lock_guard lock(mutex_);
  try {
    if (calls_.caller.size() < kMostCalls)
      calls_.caller[correlation] = operator_of_thread;
    else
      ++calls_.forgotten;
  } catch (const std::exception&) {
    ++calls_.forgotten;
  }
}

Callers::Calls Callers::end() {
  const std::lock_guard lock(mutex_);
  on_ = false;
  return std::exchange(calls_, {});
}

void Callers::after_fork(bool child) noexcept {
  if (child) {
    on_ = false;
    calls_ = {};
  }
  mutex_.unlock();
}

}  // namespace joulediff::record
