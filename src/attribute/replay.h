// Energy of one execution, from the replay pass.
#pragma once

#include <optional>
#include <vector>

#include "meter/meter.h"
#include "run/model.h"

namespace joulediff::attribute {

// One execution of a distinct operator: all that the meter saw, and the time it took.
struct Execution {
  Energy energy;
  Seconds seconds;
  std::vector<meter::Reading> readings;  // where it was measured
  // One execution in parts of those windows.
  struct Part {
    Joules joules;
    Joules half_width;
    Seconds seconds;
    meter::Reading reading;
  };
  std::vector<Part> parts{};
};

struct Replayed {
  std::vector<std::optional<Execution>> by_signature;  // none: not replayed
  std::size_t refused = 0;                             // replayed too shortly for the meter
};

Replayed replayed(const run::Run& run, const run::Block& block, const meter::Meter& meter);

}  // namespace joulediff::attribute
