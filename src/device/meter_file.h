// A CSV file of an outside meter's readings, which is there after the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/external.h"

namespace joulediff::device {

// Columns are found by the names of the header (time, power, channel and their like) with their
// units (s, ms, us, ns; W, kW, mW; without one unix time in seconds or less, and watts); without a
// header they are time, watts and perhaps channel.
struct MeterFile {
  std::vector<MeterSample> samples;
  std::uint64_t garbage = 0;        // lines that are no reading
  std::uint64_t first_garbage = 0;  // the number of the first of them, from 1
};
Result<MeterFile> read_meter_file(const std::string& path);

}  // namespace joulediff::device
