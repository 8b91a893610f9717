#include "lab/stack_tree.h"

namespace joulediff::lab {

StackTree::StackTree(run::Run& run) : run_(run) {
  for (std::size_t i = 0; i < run.frames.size(); ++i)
    frames_.try_emplace({run.frames[i].file, run.frames[i].line, run.frames[i].function},
                        run::FrameId(i));
  for (std::size_t i = 0; i < run.stacks.size(); ++i)
    nodes_.try_emplace({run.stacks[i].caller.value, run.stacks[i].frame.value}, run::StackId(i));
}

// The tree grows from the outermost frame.
run::StackId StackTree::find(const std::vector<run::Frame>& path) {
  run::StackId at;
  for (auto frame = path.rbegin(); frame != path.rend(); ++frame) {
    const run::FrameId id = frame_of(*frame);
    const auto [node, fresh] =
        nodes_.try_emplace({at.value, id.value}, run::StackId(run_.stacks.size()));
    if (fresh) run_.stacks.push_back({at, id});
    at = node->second;
  }
  return at;
}

run::FrameId StackTree::frame_of(const run::Frame& frame) {
  const auto [found, fresh] = frames_.try_emplace({frame.file, frame.line, frame.function},
                                                  run::FrameId(run_.frames.size()));
  if (fresh) run_.frames.push_back(frame);
  return found->second;
}

}  // namespace joulediff::lab
