// Follows a stream that repeats a pattern, past what is missing, inserted or changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace joulediff::attribute {

// A kernel's exact identity and its name alone: a shape that grows from step to step changes the
// launch but not the name.
struct Symbol {
  std::uint32_t exact = 0;
  std::uint32_t name = 0;
};

constexpr std::int64_t kUnmatched = -1;

// For each symbol of the stream its position in the endless repetition of the pattern (lap *
// pattern.size() + place), or kUnmatched. Positions of matched symbols rise.
std::vector<std::int64_t> walk(std::span<const Symbol> pattern, std::span<const Symbol> stream);

}  // namespace joulediff::attribute
