// The .jd file: one SQLite database and a trailer with a digest of all bytes before it
// (docs/file-format.md). Opening one executes nothing and trusts nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "run/model.h"

namespace joulediff::run {

// The database's user_version and the trailer's version. All up to it are read.
constexpr std::uint32_t kFormatVersion = 4;
constexpr std::uint64_t kMaxRunFileBytes = std::uint64_t{1} << 30;

// Reads and validates. Every fault (missing, directory, empty, truncated, foreign, newer schema,
// damaged byte, ids out of range, duplicate ids, cycles, NaN, negative durations) is one line.
Result<Run> read_run(const std::string& path);

// Validates, then writes atomically: a temporary file beside `path`, synced, then renamed. Equal
// runs give equal bytes.
Status write_run(const Run& run, const std::string& path);

// The same of bytes in memory.
Result<Run> read_run_bytes(std::string_view bytes);
Result<std::string> write_run_bytes(const Run& run);

// The database with its trailer.
std::string seal(std::string database, std::uint32_t version = kFormatVersion);

// What validate() checks is what every stage may rely on; read_run calls it, and so do importers.
// docs/file-format.md lists it.
Status validate(const Run& run);

}  // namespace joulediff::run
