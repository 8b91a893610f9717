// Which way a metric of quality is better. Of a metric that is not listed here it is asked for,
// never guessed from its name.
#pragma once

#include <optional>
#include <string_view>

#include "run/point.h"

namespace joulediff::rules {

enum class Better { lower, higher };

// Of metrics whose direction is a matter of their definition; upper case, blanks and hyphens do
// not matter, the rest of the name does.
std::optional<Better> known_direction(std::string_view metric);

// A share by its definition, said of 1 or of 100: accuracy, F1, ROUGE and the like.
bool is_share(std::string_view metric);

// What the point says of its own metric, else what is known of that. None where neither does, or
// where they contradict one another.
std::optional<Better> direction_of(const run::Point& point);

}  // namespace joulediff::rules
