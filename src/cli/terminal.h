// The standard streams: what they are, and writing to them.
#pragma once

#include <string_view>

#include "base/result.h"

namespace joulediff::cli {

// On a terminal, unless NO_COLOR is set (https://no-color.org) or the terminal is dumb.
bool colour_wanted();

// To stdout, at once: a report that a full disk swallowed is an error, not a success.
Status print(std::string_view text);

// One line on stderr, whatever the message holds.
void complain(std::string_view message);

// A standard stream that the caller closed would be the number of the next file that is opened, and
// get its text; and beyond a limit on file sizes we want the error, not to be killed.
void guard_standard_streams();

}  // namespace joulediff::cli
