// Times as data portals write them.
#pragma once

#include <optional>
#include <string_view>

#include "facility/calendar.h"

namespace joulediff::facility {

// How "03/04/2024" is meant; where nobody says, it is not guessed.
enum class DateOrder { unknown, day_first, month_first };

struct Stamp {
  Civil local;
  std::optional<int> offset;  // seconds east of UTC, where the stamp says
};

// ISO 8601 ("2024-03-31T02:00:00+01:00", with a blank for the T, with or without seconds and their
// fraction, "Z"), "31.03.2024 02:00", "31/03/2024 02:00:00 (CET)", "03/31/2024 2:00:00 AM". Of a
// span "A - B" the first. None: not a time, or one that no calendar has.
std::optional<Stamp> read_stamp(std::string_view text, DateOrder order);

}  // namespace joulediff::facility
