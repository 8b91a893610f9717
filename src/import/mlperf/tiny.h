// What EEMBC's runner leaves of a Tiny submission.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "run/submission.h"

namespace joulediff::mlperf {

// trace1-energy.bin: the byte 0xf1, the rate as a float, then microjoules of each sample as floats,
// all little-endian.
void read_energy_trace(const std::string& file, std::string_view bytes, run::Tiny& tiny,
                       Diagnostics& diagnostics);

// trace1-timestamps.json: the first instant is the start; pairs of those that follow are windows.
void read_windows(const std::string& file, std::string_view text, run::Tiny& tiny,
                  Diagnostics& diagnostics);

// energy/results.txt: what the runner computed of each window; after read_windows.
void read_tiny_results(const std::string& file, std::string_view text, run::Tiny& tiny,
                       Diagnostics& diagnostics);

void read_tiny_log(std::string_view text, run::Tiny& tiny);       // energy/log.txt
void read_tiny_accuracy(std::string_view text, run::Tiny& tiny);  // accuracy/results.txt

}  // namespace joulediff::mlperf
