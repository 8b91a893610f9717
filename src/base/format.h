// Numbers and text for people: an SI prefix, three significant digits, and nothing in a string that
// could move a terminal's cursor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/energy.h"

namespace joulediff {

// "284 mJ", "1.50 kW", "0 J"; "unknown" where the value is not a number.
std::string format_quantity(double value, std::string_view unit);
std::string format(Joules joules);
std::string format(Watts watts);
std::string format(Seconds seconds);  // "3.20 ms"; from two minutes on "2 min 5 s", "1 h 2 min"

// "284 mJ ±3 %": the interval's half width in percent of the value; "284 mJ (250 mJ to 330 mJ)"
// where the interval is lopsided or wider than the value.
std::string format(const Energy& energy);

// "12", "9,999", "1.23 M".
std::string format_count(std::uint64_t count);

// "12 %", "0.4 %", "-3.1 %" of a ratio 0.12, 0.004, -0.031.
std::string format_percent(double ratio);

// UTF-8 with control characters, and bytes that are not UTF-8, replaced by '?'.
std::string printable(std::string_view text);

// Columns of a terminal that the text takes.
std::size_t width_of(std::string_view text);

// At most `width` columns; what is cut is shown by "…" at the end, or at the beginning where the
// end matters more (paths).
enum class Cut { end, begin };
std::string truncated(std::string_view text, std::size_t width, Cut cut = Cut::end);

}  // namespace joulediff
