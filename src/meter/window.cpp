#include "meter/window.h"

#include <algorithm>

namespace joulediff::meter {
namespace {

// Between two chunks the program asks the launcher whether it may stop; a longer pause is another
// window, since the board may have fallen asleep in it.
constexpr Nanoseconds kLongestPause = 50'000'000;

}  // namespace

double Window::executions(Nanoseconds from, Nanoseconds to) const {
  double sum = 0;
  for (const run::Replay& chunk : chunks) {
    const Nanoseconds inside = std::min(to, chunk.end) - std::max(from, chunk.begin);
    if (inside <= 0) continue;
    sum += static_cast<double>(chunk.count) * static_cast<double>(inside) /
           static_cast<double>(chunk.end - chunk.begin);
  }
  return sum;
}

std::vector<Window> floor_windows(const run::Block& block, run::ReplayKind kind) {
  std::vector<run::Replay> chunks;
  for (const run::Replay& replay : block.replays)
    if (replay.kind == kind) chunks.push_back(replay);
  return contiguous(std::move(chunks));
}

std::vector<Window> contiguous(std::vector<run::Replay> chunks) {
  std::erase_if(chunks, [](const run::Replay& chunk) { return chunk.end <= chunk.begin; });
  std::ranges::sort(chunks, {}, &run::Replay::begin);
  std::vector<Window> windows;
  for (const run::Replay& chunk : chunks) {
    if (windows.empty() || chunk.begin - windows.back().end > kLongestPause)
      windows.push_back({chunk.begin, chunk.end, {}});
    windows.back().end = std::max(windows.back().end, chunk.end);
    windows.back().chunks.push_back(chunk);
  }
  return windows;
}

}  // namespace joulediff::meter
