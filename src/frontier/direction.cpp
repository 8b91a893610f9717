#include "frontier/direction.h"

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::frontier {

Result<std::pair<std::string, Better>> read_direction(std::string_view text) {
  const std::size_t at = text.rfind('=');
  const std::string_view way = at == std::string_view::npos ? "" : text.substr(at + 1);
  if (at == std::string_view::npos || at == 0 || (way != "higher" && way != "lower"))
    return fail(ExitCode::usage,
                fmt::format("--better {}: write METRIC=higher or METRIC=lower", printable(text)));
  return std::pair{std::string(text.substr(0, at)),
                   way == "higher" ? Better::higher : Better::lower};
}

}  // namespace joulediff::frontier
