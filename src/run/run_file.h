// The .jd file: one SQLite database and a trailer with a digest of all bytes before it
// (docs/file-format.md). Opening one executes nothing and trusts nothing.
#pragma once

#include <string>

#include "base/result.h"
#include "run/model.h"

namespace joulediff::run {

// Reads and validates. Every fault (missing, directory, empty, truncated, foreign, newer schema,
// damaged byte, ids out of range, duplicate ids, cycles, NaN, negative durations) is one line.
Result<Run> read_run(const std::string& path);

// Writes atomically: a temporary file beside `path`, synced, then renamed.
Status write_run(const Run& run, const std::string& path);

// What validate() checks is what every stage may rely on; read_run calls it, and so do importers.
Status validate(const Run& run);

}  // namespace joulediff::run
