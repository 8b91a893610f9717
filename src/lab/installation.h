// Where the parts of Joulediff that go into a recorded program lie.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace joulediff::lab {

struct Installation {
  std::filesystem::path recorder;  // libjoulediff-record.so
  std::filesystem::path inject;    // the folder whose sitecustomize.py loads the plug-ins
};

// In JOULEDIFF_HOME where it is set, else where the running program says.
Result<Installation> find_installation();

// With PREFIX/bin/joulediff as the program: PREFIX/lib and PREFIX/python (a build tree or a
// bundle), else the Python package that pip installed with the program.
Result<Installation> installation_of(const std::filesystem::path& program);

}  // namespace joulediff::lab
