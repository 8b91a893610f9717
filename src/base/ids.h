// Typed indices: a tensor's number cannot be used where an operator's is meant.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace joulediff {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  constexpr bool valid() const { return value != kNone; }
  constexpr std::size_t index() const { return value; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace joulediff

template <class Tag>
struct std::hash<joulediff::Id<Tag>> {
  std::size_t operator()(joulediff::Id<Tag> id) const noexcept { return id.value; }
};
