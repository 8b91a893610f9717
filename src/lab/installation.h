// Where the parts of Joulediff that go into a recorded program lie.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace joulediff::lab {

struct Installation {
  std::filesystem::path recorder;  // libjoulediff-record.so
  std::filesystem::path inject;    // the folder whose sitecustomize.py loads the plug-ins
};

// JOULEDIFF_HOME, else beside the running program (../lib, ../python), else the source tree that it
// was built from.
Result<Installation> find_installation();

}  // namespace joulediff::lab
