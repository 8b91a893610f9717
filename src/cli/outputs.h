// The files that a verb is told to write, looked at before anything is read, computed or written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulediff::cli {

struct Outputs {
  std::string_view verb;
  std::vector<std::string> files;  // "-", stdout, is none
  bool force = false;              // may replace what exists
};

// Without links and dots; also of a file that is not there yet.
std::string real_path(const std::string& path);

// Whether both name one file, by whatever links and spelling, also where it is not there yet.
bool same_file(const std::string& x, const std::string& y);

// Files that the verb reads are never written.
Status check_apart(const Outputs& outputs, std::span<const std::string> inputs);

// That, and: names are not empty, two outputs are two files, what exists is replaced by `force`
// alone and is a regular file, and the folders are there.
Status check_outputs(const Outputs& outputs, std::span<const std::string> inputs);

}  // namespace joulediff::cli
