// Which operator of the values pass each operator of another pass is, by the sequences of names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace joulediff::lab {

constexpr std::uint32_t kNoPartner = 0xFFFFFFFFu;

// For each of `names` the index of its partner in `reference`, ascending: the longest common
// subsequence. Where the middle that differs is too long for that (kLongestSquare), it has none.
constexpr std::size_t kLongestSquare = 64'000'000;
std::vector<std::uint32_t> align(std::span<const std::string_view> reference,
                                 std::span<const std::string_view> names);

}  // namespace joulediff::lab
