// A run as the bytes of an SQLite database, and back. The database is never a file of its own: the
// run file wraps it (run_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "run/model.h"
#include "run/run_file.h"

namespace joulediff::run {

constexpr std::int32_t kApplicationId = 0x4A6F756C;  // "Joul"

// "CREATE TABLE ..." for each table of a format, in order, as sqlite_master holds them.
std::vector<std::string> schema(std::uint32_t version);

// Equal runs give equal bytes. The run must be valid.
Result<std::string> to_database(const Run& run);

// Typed and range-checked, but not yet validated. Bytes that are no SQLite database, that another
// program or a newer Joulediff wrote, or whose schema is not exactly ours are errors.
Result<Run> from_database(std::string_view bytes, std::uint32_t version);

}  // namespace joulediff::run
