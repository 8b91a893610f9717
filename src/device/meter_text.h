// Numbers as outside meters write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace joulediff::device {

// Without the blanks around it.
std::string_view trimmed(std::string_view text);

// Unix time in units of `unit` nanoseconds; 0: in seconds, larger numbers in ms, us or ns.
std::optional<Nanoseconds> unix_time(std::string_view text, Nanoseconds unit = 0);

// Power in units of `unit` watts, as milliwatts.
std::optional<std::int64_t> power(std::string_view text, double unit = 1);

}  // namespace joulediff::device
