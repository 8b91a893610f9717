#include "lab/meters.h"

#include <cstdlib>
#include <iterator>

namespace joulediff::lab {

Meters open_meters() {
  Meters meters;
  device::Boards nvidia =
      device::Boards::open(std::getenv("CUDA_VISIBLE_DEVICES"), std::getenv("CUDA_DEVICE_ORDER"));
  device::AmdBoards amd = device::AmdBoards::open(std::getenv("ROCR_VISIBLE_DEVICES"),
                                                  std::getenv("HIP_VISIBLE_DEVICES"));
  meters.boards = std::move(nvidia.boards);
  meters.amd_boards = std::move(amd.boards);
  meters.notes = std::move(nvidia.notes);
  meters.notes.insert(meters.notes.end(), std::make_move_iterator(amd.notes.begin()),
                      std::make_move_iterator(amd.notes.end()));
  return meters;
}

bool is_meter_file(const std::string& meter) {
  return meter.ends_with(".csv") && meter.find_first_of(" \t|;&") == std::string::npos;
}

}  // namespace joulediff::lab
