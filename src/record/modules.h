// The code that is mapped into this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace joulediff::record {

struct Module {
  std::uint64_t begin, end, file_offset;  // one executable segment
  std::string path, build_id;             // build_id: hexadecimal; empty where it has none
};
std::vector<Module> modules_of_process();

}  // namespace joulediff::record
