// A measurement from a file: a recorded run, or a point in TOML.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/point.h"

namespace joulediff::cli {

// A run's energies and times are of one step; its repeats are its blocks. Its label is the file
// where it has none.
Result<run::Point> read_measurement(const std::string& path);
Result<std::vector<run::Point>> read_measurements(const std::vector<std::string>& paths);

}  // namespace joulediff::cli
