#include "attribute/timeline.h"

#include <algorithm>
#include <limits>

namespace joulediff::attribute {
namespace {

struct Active {
  Nanoseconds end = 0;
  std::size_t index = 0;
};

// Sweeps over the window; between two events the set of running kernels does not change.
class Sweep {
 public:
  Sweep(const run::Run& run, const run::KernelSeries& trace, const Recognition& recognition,
        Nanoseconds begin, Nanoseconds end)
      : series_(trace), recognition_(recognition), now_(begin), end_(end) {
    result_.usage.resize(run.operators.size());
    for (const run::Kernel& kernel : run.kernels)
      communicates_.push_back(kernel.name.starts_with("nccl") || kernel.name.starts_with("rccl") ||
                              kernel.name.find("ncclDevKernel") != std::string::npos);
  }

  Timeline sweep() {
    Nanoseconds last_end = std::numeric_limits<Nanoseconds>::min();
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const Nanoseconds start = series_.start[i], end = start + series_.duration[i];
      advance(std::min(start, end_));
      if (running_.empty()) pause(last_end, start);
      last_end = std::max(last_end, end);
      if (start >= end_) return std::move(result_);
      count(i);
      if (end > now_) running_.push_back({end, i});
    }
    advance(end_);
    pause(last_end, std::numeric_limits<Nanoseconds>::max());
    return std::move(result_);
  }

 private:
  // Charges all time up to `until` in which kernels run.
  void advance(Nanoseconds until) {
    while (!running_.empty() && now_ < until) {
      const Nanoseconds next = std::min(until, std::ranges::min(running_, {}, &Active::end).end);
      charge(to_seconds(next - now_).value);
      now_ = next;
      std::erase_if(running_, [&](const Active& active) { return active.end <= now_; });
    }
  }

  void charge(double seconds) {
    const bool waiting = std::ranges::all_of(running_, [&](const Active& active) {
      return communicates_[series_.kernel[active.index].index()];
    });
    (waiting ? result_.waiting : result_.busy) += seconds;
    const bool overlaps = running_.size() > 1;
    if (overlaps) result_.overlapped += seconds;
    for (const Active& active : running_) {
      const run::OperatorId op = recognition_.op[active.index];
      if (!op.valid()) continue;
      Usage& usage = result_.usage[op.index()];
      usage.seconds += seconds;
      usage.share += seconds / static_cast<double>(running_.size());
      if (overlaps) usage.overlapped += seconds;
    }
  }

  // A pause from `from` to `to`, judged by its whole length, charged inside the window.
  void pause(Nanoseconds from, Nanoseconds to) {
    const Nanoseconds until = std::min(to, end_);
    if (until <= now_) return;
    const bool bounded = from != std::numeric_limits<Nanoseconds>::min() &&
                         to != std::numeric_limits<Nanoseconds>::max();
    const bool short_pause = bounded && to - from <= kLaunchGap;
    (short_pause ? result_.launch_gap : result_.idle) += to_seconds(until - now_).value;
    now_ = until;
  }

  void count(std::size_t i) {
    const run::OperatorId op = recognition_.op[i];
    if (!op.valid()) return;
    const Nanoseconds start = series_.start[i], duration = series_.duration[i];
    const Nanoseconds inside = std::min(end_, start + duration) - std::max(now_, start);
    if (inside < 0 || (inside == 0 && duration > 0)) return;
    const double part =
        duration > 0 ? static_cast<double>(inside) / static_cast<double>(duration) : 1;
    result_.usage[op.index()].calls += part * recognition_.calls[i];
  }

  const run::KernelSeries& series_;
  const Recognition& recognition_;
  Nanoseconds now_;
  Nanoseconds end_;
  std::vector<bool> communicates_;
  std::vector<Active> running_;
  Timeline result_;
};

}  // namespace

Timeline timeline(const run::Run& run, const run::KernelSeries& trace,
                  const Recognition& recognition, Nanoseconds begin, Nanoseconds end) {
  return Sweep(run, trace, recognition, begin, end).sweep();
}

}  // namespace joulediff::attribute
