// spl.txt: the readings of PTDaemon.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "run/submission.h"

namespace joulediff::mlperf {

run::PowerLog read_power_log(const std::string& file, std::string_view text,
                             Diagnostics& diagnostics);

}  // namespace joulediff::mlperf
