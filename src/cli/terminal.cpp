#include "cli/terminal.h"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace joulediff::cli {

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace joulediff::cli
