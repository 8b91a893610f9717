// Follows a stream that repeats patterns, past what is missing, inserted, changed or repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace joulediff::attribute {

// A kernel's exact identity and its name alone: a shape that grows from step to step changes the
// launch but not the name.
struct Symbol {
  std::uint32_t exact = 0;
  std::uint32_t name = 0;
};

// The symbols of one step.
using Pattern = std::vector<Symbol>;

// Where a symbol of the stream stands: at `place` of `pattern`, in the step `lap` of the stream.
struct Place {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::uint32_t pattern = kNone;
  std::uint32_t place = 0;
  std::uint32_t lap = 0;
  bool found() const { return pattern != kNone; }
  bool operator==(const Place&) const = default;
};

// The patterns that a step may follow that begins at a symbol of the stream, likeliest first. What
// the stream holds decides; this only breaks ties.
using Likely = std::function<std::span<const std::uint32_t>(std::size_t symbol)>;

struct Walk {
  std::vector<Place> places;    // of each symbol of the stream
  std::size_t comparisons = 0;  // of symbols: what the walk cost
};

Walk walk(std::span<const Pattern> patterns, std::span<const Symbol> stream,
          const Likely& likely = {});

}  // namespace joulediff::attribute
