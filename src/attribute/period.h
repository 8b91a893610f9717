// Steps where nobody marked them: the period of the stream of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"

namespace joulediff::attribute {

// A sequence that steps repeat, where the stream has it: a prefill, a decode.
struct Form {
  std::size_t begin = 0;
  std::size_t length = 0;
};

struct Period {
  std::size_t length = 0;               // symbols of the most common form
  std::vector<std::size_t> boundaries;  // where steps begin, rising
  std::vector<Form> forms;              // the most common first
  double fit = 0;                       // share of the symbols that lie where a form has them
};

// `symbols`: a number for each kernel's name, in order. `pauses`: of the device before each; where
// they are given, a step begins behind the longest. None: nothing repeats, or no more than twice.
std::optional<Period> find_period(std::span<const std::uint32_t> symbols,
                                  std::span<const Nanoseconds> pauses = {});

}  // namespace joulediff::attribute
