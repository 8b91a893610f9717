#include "lab/installation.h"

#include <cstdlib>
#include <vector>

namespace joulediff::lab {

namespace fs = std::filesystem;

Result<Installation> find_installation() {
  std::vector<fs::path> homes;
  if (const char* home = std::getenv("JOULEDIFF_HOME")) {
    homes.emplace_back(home);
  } else {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) homes.push_back(program.parent_path().parent_path());
    homes.emplace_back(JOULEDIFF_SOURCE_DIR);
  }
  const auto find = [&](const fs::path& part) {
    std::error_code error;
    for (const fs::path& home : homes)
      if (fs::exists(home / part, error)) return fs::absolute(home / part, error);
    return fs::path();
  };
  const Installation found{find("lib/libjoulediff-record.so"), find("python/joulediff/inject")};
  const auto missing = [&](const char* what) {
    return fail(ExitCode::environment, std::string(what) +
                                           " is not installed beside the program (looked in " +
                                           homes.front().string() +
                                           "): set JOULEDIFF_HOME to the folder that holds lib/ "
                                           "and python/");
  };
  if (found.recorder.empty()) return missing("the recorder lib/libjoulediff-record.so");
  if (found.inject.empty()) return missing("the plug-in folder python/joulediff/inject");
  return found;
}

}  // namespace joulediff::lab
