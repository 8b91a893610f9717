// Each stream of the trace follows the part of the templates that its lane has. Streams that live
// long are followed by themselves; those that come and go, in their order, as if they were one.
#include "attribute/recognise.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "attribute/walk.h"
#include "base/format.h"

namespace joulediff::attribute {
namespace {

// Of the trace, for a stream to be followed by itself.
constexpr double kLongLived = 0.25;
// A kernel runs in the step in which it was launched or, where the device lags, in one soon after.
constexpr std::size_t kLag = 4;

// What to follow against which lane; none: the whole step.
struct Job {
  std::optional<std::uint32_t> lane;
  std::vector<std::uint32_t> members;
};

class Recogniser {
 public:
  Recogniser(const run::Run& run, const run::Block& block, const Templates& templates)
      : trace_(block.trace_kernels),
        templates_(templates),
        lanes_(templates.lanes),
        symbols_(symbols(run)) {
    result_.op.resize(trace_.size());
    result_.calls.resize(trace_.size());
    result_.launches.resize(run.operators.size());
    for (const Template& one : templates_.steps)
      for (const run::OperatorId op : one.op)
        if (op.valid()) result_.launches[op.index()] = true;
    for (const run::OperatorId op : templates_.untraced) result_.launches[op.index()] = true;
    for (const run::Step& step : block.steps)
      if (step.pass == run::Pass::trace) steps_.push_back({step.begin, step.inputs});
    std::ranges::sort(steps_, {}, &TraceStep::begin);
    for (std::uint32_t t = 0; t < templates_.size(); ++t)
      by_inputs_[templates_.steps[t].inputs].push_back(t);
  }

  Recognition recognise() {
    if (templates_.size() > 0 && trace_.size() > 0)
      for (const Job& job : jobs()) follow(job);
    double all = 0, known = 0;
    for (std::size_t i = 0; i < trace_.size(); ++i) {
      const double seconds = to_seconds(trace_.duration[i]).value;
      all += seconds;
      if (result_.op[i].valid()) known += seconds;
    }
    result_.share = all > 0 ? known / all : 1;
    return std::move(result_);
  }

 private:
  struct TraceStep {
    Nanoseconds begin = 0;
    run::InputsId inputs;
  };

  std::vector<Job> jobs() {
    std::vector<Job> result;
    std::map<std::optional<std::uint32_t>, std::vector<std::uint32_t>> passing;
    std::vector<Strand> all = strands(trace_);
    const double length = static_cast<double>(trace_.start.back() - trace_.start.front());
    for (Strand& strand : all) {
      auto& members = strand.members;
      std::optional<std::uint32_t> lane;
      if (lanes_.size() > 1) lane = lanes_.find(strand.queue, sequence(symbols_, trace_, members));
      const auto lived =
          static_cast<double>(trace_.start[members.back()] - trace_.start[members.front()]);
      if (lived >= kLongLived * length) {
        result.push_back({lane, std::move(members)});
      } else {
        auto& together = passing[lane];
        together.insert(together.end(), members.begin(), members.end());
      }
    }
    for (auto& [lane, members] : passing) {
      std::ranges::sort(members);
      result.push_back({lane, std::move(members)});
    }
    return result;
  }

  void follow(const Job& job) {
    const LanePatterns part = patterns(templates_.steps, symbols_, job.lane);
    std::size_t now = 0;
    std::vector<std::uint32_t> likely;
    const Likely guess = [&](std::size_t symbol) -> std::span<const std::uint32_t> {
      const Nanoseconds time = trace_.start[job.members[symbol]];
      while (now < steps_.size() && steps_[now].begin <= time) ++now;
      likely.clear();
      for (std::size_t back = 1; back <= std::min(kLag, now); ++back)
        if (const auto found = by_inputs_.find(steps_[now - back].inputs);
            found != by_inputs_.end() && steps_[now - back].inputs.valid())
          likely.insert(likely.end(), found->second.begin(), found->second.end());
      return likely;
    };
    const Walk walked = walk(part.patterns, sequence(symbols_, trace_, job.members), guess);
    double busy = 0;
    for (std::size_t k = 0; k < job.members.size(); ++k) {
      const Place& at = walked.places[k];
      if (!at.found()) continue;
      const std::uint32_t i = job.members[k];
      const Template& step = templates_.steps[at.pattern];
      const std::size_t place = part.places[at.pattern][at.place];
      result_.op[i] = step.op[place];
      result_.calls[i] = static_cast<float>(step.calls[place]);
      busy += to_seconds(trace_.duration[i]).value;
    }
    // The busiest stream tells how far the run is.
    if (busy > busiest_) {
      busiest_ = busy;
      mark(job, part, walked);
    }
  }

  // Progress in a step is the time of its kernels, as the template has them; a loop that goes round
  // again makes the step that much longer.
  void mark(const Job& job, const LanePatterns& part, const Walk& walked) {
    std::vector<std::vector<double>> before;  // by pattern and place, and at its end
    for (std::size_t t = 0; t < part.patterns.size(); ++t) {
      double sum = 0;
      before.push_back({0});
      for (const std::uint32_t place : part.places[t])
        before.back().push_back(sum += templates_.steps[t].seconds[place]);
    }
    result_.marks.clear();
    std::size_t first = 0;  // mark of the lap
    double extra = 0, reached = 0;
    Place last;
    const auto close_lap = [&] {
      const double length = last.found() ? before[last.pattern].back() + extra : 0;
      for (std::size_t m = first; m < result_.marks.size(); ++m) {
        Mark& mark = result_.marks[m];
        mark.progress = length > 0 ? last.lap + std::min(1.0, mark.progress / length) : reached;
        mark.progress = reached = std::max(reached, mark.progress);
        mark.share = length > 0 ? mark.share / length : 0;
      }
      first = result_.marks.size();
      extra = 0;
    };
    for (std::size_t k = 0; k < job.members.size(); ++k) {
      const Place& at = walked.places[k];
      if (!at.found()) continue;
      if (last.found() && at.lap != last.lap) close_lap();
      const auto& sums = before[at.pattern];
      if (last.found() && at.lap == last.lap && at.pattern == last.pattern && at.place < last.place)
        extra += sums[last.place + 1] - sums[at.place];
      const std::uint32_t i = job.members[k];
      result_.marks.push_back({trace_.start[i], sums[at.place] + extra,
                               sums[at.place + 1] - sums[at.place],
                               to_seconds(trace_.duration[i]).value});
      last = at;
    }
    close_lap();
  }

  const run::KernelSeries& trace_;
  const Templates& templates_;
  Lanes lanes_;
  std::vector<Symbol> symbols_;
  std::vector<TraceStep> steps_;
  std::map<run::InputsId, std::vector<std::uint32_t>> by_inputs_;
  double busiest_ = -1;
  Recognition result_;
};

}  // namespace

Recognition recognise(const run::Run& run, const run::Block& block, const Templates& templates) {
  return Recogniser(run, block, templates).recognise();
}

std::string unrecognised(const run::Run& run, const run::KernelSeries& trace,
                         const Recognition& recognition) {
  constexpr std::size_t kNamed = 3;
  std::map<std::string_view, double> seconds;
  double all = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const double one = to_seconds(trace.duration[i]).value;
    all += one;
    if (!recognition.op[i].valid()) seconds[run.kernels[trace.kernel[i].index()].name] += one;
  }
  std::vector<std::pair<double, std::string_view>> order;
  order.reserve(seconds.size());
  for (const auto& [name, sum] : seconds) order.emplace_back(sum, name);
  std::ranges::sort(order, std::greater());
  std::string result;
  for (std::size_t k = 0; k < std::min(kNamed, order.size()); ++k)
    result += fmt::format("{}{} ({:.1f} %)", k == 0 ? "" : ", ",
                          truncated(printable(order[k].second), 60), 100 * order[k].first / all);
  if (order.size() > kNamed) result += fmt::format(" and {} more", order.size() - kNamed);
  return result;
}

double steps_between(const std::vector<Mark>& marks, Nanoseconds from, Nanoseconds to) {
  const auto progress = [&](Nanoseconds time) {
    const auto after = std::ranges::upper_bound(marks, time, {}, &Mark::time);
    if (after == marks.begin()) return marks.front().progress;
    const Mark& mark = *std::prev(after);
    const double passed = to_seconds(time - mark.time).value;
    const double part = mark.seconds > 0 ? std::min(1.0, passed / mark.seconds) : 1.0;
    return mark.progress + mark.share * part;
  };
  return marks.empty() ? 0 : progress(to) - progress(from);
}

}  // namespace joulediff::attribute
