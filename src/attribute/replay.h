// Energy of one execution, from the replay pass.
#pragma once

#include <optional>
#include <vector>

#include "meter/meter.h"
#include "run/model.h"

namespace joulediff::attribute {

// One execution of a distinct operator: all that the meter saw, and the time it took. Where it was
// replayed in bursts, its part of the pauses is in what the meter saw.
struct Execution {
  Energy energy;
  Seconds seconds;
  std::vector<meter::Reading> readings;  // where it was measured
  // One execution in parts of its windows, those at other clocks too; seconds with pauses.
  struct Part {
    Joules joules;
    Joules half_width;
    Seconds seconds;
    meter::Reading reading;
  };
  std::vector<Part> parts{};
  Seconds pause{};  // between bursts and chunks, for each execution
  Seconds whole() const { return seconds + pause; }
};

struct Replayed {
  std::vector<std::optional<Execution>> by_signature;  // none: not replayed
  std::size_t refused = 0;                             // replayed too shortly for the meter
  std::vector<std::optional<Execution>> cold{};  // by signature: with operands that are in no cache
};

// Of an operator that was replayed at several clocks the windows count that are nearest to the
// program's, where that is known (MHz).
Replayed replayed(const run::Run& run, const run::Block& block, const meter::Meter& meter,
                  std::optional<double> program_clock = std::nullopt);

}  // namespace joulediff::attribute
