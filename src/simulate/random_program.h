// Programs, boards and sensors drawn by lot, for properties that must hold for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/recording.h"

namespace joulediff::simulate {

struct Draw {
  Program program;
  BoardModel board;
  Sensors sensors;
  Passes passes;
  std::uint64_t seed = 0;
  // What sets it apart, in a word each: "power cap", "lost ticks". Empty: nothing does.
  std::vector<std::string> traits;
};

// `strange`: sensors that the estimators have no model of: a counter that samples, lags, is read
// early, stands still, forgets, starts again, counts in coarse steps or is off by a constant.
Draw draw(std::uint64_t seed, bool strange);

}  // namespace joulediff::simulate
