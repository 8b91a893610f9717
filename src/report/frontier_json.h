// Groups of measurements as JSON, for the reports that have some within them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/frontier.h"

namespace joulediff::report {

// As joulediff.frontier/1 has them under "groups".
nlohmann::ordered_json groups_json(const FrontierPage& page);

}  // namespace joulediff::report
