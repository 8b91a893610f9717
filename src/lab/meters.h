// The meters that a recording reads.
#pragma once

#include <string>
#include <vector>

#include "device/nvml.h"
#include "device/rocm_smi.h"

namespace joulediff::lab {

struct Meters {
  std::vector<device::Board> boards;
  std::vector<device::AmdBoard> amd_boards;
  std::vector<std::string> outside;  // commands and CSV files (--meter)
  std::string powercap = "/sys/class/powercap";
  std::string hwmon = "/sys/class/hwmon";
  Diagnostics notes;  // on what cannot be given
};

// The boards that a program started from here will see.
Meters open_meters();

// What --meter names is a file that is read after the run, not a command.
bool is_meter_file(const std::string& meter);

}  // namespace joulediff::lab
