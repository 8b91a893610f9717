#include "run/model.h"

namespace joulediff::run {

std::vector<FrameId> call_path(const Run& run, StackId stack) {
  std::vector<FrameId> path;
  // A caller comes before what it calls (validate), so that this ends.
  for (StackId id = stack; id.valid(); id = run.stacks[id.index()].caller) {
    path.push_back(run.stacks[id.index()].frame);
  }
  return path;
}

}  // namespace joulediff::run
