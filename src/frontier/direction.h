// The direction of a metric as the command line says it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "frontier/pareto.h"

namespace joulediff::frontier {

// "perplexity=lower"; another word, or no metric, is a mistake of usage.
Result<std::pair<std::string, Better>> read_direction(std::string_view text);

}  // namespace joulediff::frontier
