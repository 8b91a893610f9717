// Calls into drivers that may never return.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "base/units.h"

namespace joulediff::device {

// What `call` gives, or none if it takes longer than `patience`: it is then left behind on a thread
// of its own, since a thread inside a driver cannot be ended. It must own all that it touches.
template <class Call>
auto within(Nanoseconds patience, Call call) -> std::optional<decltype(call())> {
  std::packaged_task<decltype(call())()> task(std::move(call));
  auto result = task.get_future();
  std::thread thread(std::move(task));
  if (result.wait_for(std::chrono::nanoseconds(patience)) != std::future_status::ready) {
    thread.detach();
    return std::nullopt;
  }
  thread.join();
  return result.get();
}

}  // namespace joulediff::device
