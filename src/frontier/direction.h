// Which way a metric of quality is better. Of a metric that is not listed here it is asked for,
// never guessed from its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "frontier/pareto.h"

namespace joulediff::frontier {

// Of metrics whose direction is a matter of their definition; upper case, blanks and hyphens do
// not matter, the rest of the name does.
std::optional<Better> known_direction(std::string_view metric);

// "perplexity=lower"; another word, or no metric, is a mistake of usage.
Result<std::pair<std::string, Better>> read_direction(std::string_view text);

}  // namespace joulediff::frontier
