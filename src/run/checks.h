// What the checks of a run share: how a fault is said, and what is in range.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "run/names.h"

namespace joulediff::run {

// Sums and differences of two instants cannot overflow.
constexpr Nanoseconds kTimeLimit = Nanoseconds{1} << 61;

// One fault: what and where. validate() adds what to do.
template <class... Args>
tl::unexpected<Error> fault(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ExitCode::bad_input, fmt::format(format, std::forward<Args>(args)...));
}

template <class E>
bool known(E code) {
  return static_cast<std::size_t>(code) < kNames<E>.size();
}

inline bool in_time(Nanoseconds t) {
  return t > -kTimeLimit && t < kTimeLimit;
}
inline bool window(Nanoseconds begin, Nanoseconds end) {
  return in_time(begin) && in_time(end) && begin <= end;
}

// None, or in range.
template <class Tag>
bool fits(Id<Tag> id, std::size_t count) {
  return !id.valid() || id.index() < count;
}

Status check_tensor(const Tensor& tensor, std::size_t id);

// Of the processes: their steps, replays and series.
Status check_blocks(const Run& run);

}  // namespace joulediff::run
