// Whole files in and out of memory, with errors that a person can act on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace joulediff {

// Missing, a directory, unreadable, or larger than `limit` bytes: bad input, one line.
Result<std::string> read_file(const std::string& path, std::uint64_t limit);

// Writes a temporary beside `path`, syncs it and renames it over `path`: a reader sees the old file
// or the new one, and a failure (full disk, read-only folder; ExitCode::environment) leaves the old
// one as it was and no temporary. Only a regular file is ever replaced; a link is followed.
Status write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace joulediff
