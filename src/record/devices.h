// The devices of this process as CUDA counts them, by the UUIDs under which everybody else knows
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace joulediff::record {

struct Device {
  std::uint32_t ordinal;
  std::string uuid, name;  // uuid: GPU-... or MIG-...
};

// Empty: the process has no CUDA, or CUDA is not up yet.
std::vector<Device> devices_of_process();

}  // namespace joulediff::record
