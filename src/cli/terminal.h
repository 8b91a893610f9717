// What stdout is: reports are coloured for people only.
#pragma once

namespace joulediff::cli {

// On a terminal, unless NO_COLOR is set (https://no-color.org) or the terminal is dumb.
bool colour_wanted();

}  // namespace joulediff::cli
