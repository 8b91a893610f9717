// joulediff calibrate --noise: by how much processes of one program differ on this machine.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace joulediff::cli {

Result<ExitCode> measure_noise(const std::vector<std::string>& paths, bool keep, bool json);

}  // namespace joulediff::cli
