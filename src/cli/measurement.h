// A measurement from a file: a recorded run, or a point in TOML.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/model.h"
#include "run/point.h"

namespace joulediff::cli {

// A run's energies and times are of one step; its repeats are its blocks. Its label is the file
// where it has none.
Result<run::Point> read_measurement(const std::string& path);
// A measurement that is given twice, also by another name, is bad input.
Result<std::vector<run::Point>> read_measurements(const std::vector<std::string>& paths);

// What tells a block from all others: the same in every copy of its run.
std::string identity(const run::Run& run, const run::Block& block);

}  // namespace joulediff::cli
