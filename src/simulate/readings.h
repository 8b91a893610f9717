// What each meter of a recording says that the trace took, read as people read them.
#pragma once

#include <string>
#include <vector>

#include "simulate/recording.h"

namespace joulediff::simulate {

struct Reading {
  std::string meter;
  double joules = 0;
  double error = 0;  // relative to the truth
};

// Of the meters that the board has; one that says nothing within the trace is left out.
std::vector<Reading> readings(const Recording& recording);

// joulediff.simulate/1
std::string simulation_json(const Recording& recording, std::string_view board,
                            std::string_view source, std::uint64_t seed);

}  // namespace joulediff::simulate
