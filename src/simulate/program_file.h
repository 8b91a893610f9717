// A program, its board and sensors, written by a person (docs/simulate.md).
#pragma once

#include <string>

#include "base/result.h"
#include "simulate/recording.h"

namespace joulediff::simulate {

struct Simulation {
  Program program;
  std::string board_key;
  std::string source;  // of the board's figures
  BoardModel board;
  Sensors sensors;
  Passes passes;
};

// What makes no sense is one line with its place: "p.toml, line 3: ...".
Result<Simulation> read_program(const std::string& path);

}  // namespace joulediff::simulate
