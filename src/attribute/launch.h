// The processes of one launch, put together by what its meters see: a device, whichever ranks run
// on it, or a host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attribute/recognise.h"
#include "meter/meter.h"
#include "run/model.h"

namespace joulediff::attribute {

// The blocks of one order, by rank.
struct Launch {
  std::uint32_t order = 0;
  std::vector<const run::Block*> ranks;
};
std::vector<Launch> launches(const run::Run& run);

// What one meter sees of a launch: `block` has its series, and of the rank that leads (the busiest
// on the device, the first on the host) the steps, replays and times of operators; no kernels.
struct HostShare {
  run::Block block;
  std::vector<const run::Block*> ranks;
};
std::vector<HostShare> host_shares(const Launch& launch);

struct DeviceShare {
  std::string name;  // for people
  bool metered = false;
  run::Block block;
  const run::KernelSeries* trace = nullptr;   // of all ranks on the device, in order of their start
  Recognition recognition;                    // of `trace`; its marks are the leading rank's
  std::unique_ptr<run::KernelSeries> merged;  // where `trace` is of several ranks
};
std::vector<DeviceShare> device_shares(const run::Run& run, const Launch& launch,
                                       const meter::Meter& meter);

}  // namespace joulediff::attribute
