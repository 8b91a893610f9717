// The tree of call paths of a run, as it grows: a path is the number of its innermost node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "run/model.h"

namespace joulediff::lab {

class StackTree {
 public:
  // Knows what the run has already.
  explicit StackTree(run::Run& run);

  // The node of a path, which comes innermost first; none for an empty one.
  run::StackId find(const std::vector<run::Frame>& path);

 private:
  run::FrameId frame_of(const run::Frame& frame);

  run::Run& run_;
  std::map<std::tuple<std::string, std::uint32_t, std::string>, run::FrameId> frames_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, run::StackId> nodes_;  // caller, frame
};

}  // namespace joulediff::lab
