#include "attribute/recognise.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <boost/unordered/unordered_flat_map.hpp>

#include "attribute/walk.h"

namespace joulediff::attribute {
namespace {

// Which of its executions in a series belong to one step or stream.
using Members = std::vector<std::size_t>;

std::vector<Symbol> symbols(const run::Run& run) {
  boost::unordered_flat_map<std::string_view, std::uint32_t> names;
  std::vector<Symbol> result;
  for (std::size_t i = 0; i < run.kernels.size(); ++i) {
    const auto number = static_cast<std::uint32_t>(names.size());
    result.push_back({static_cast<std::uint32_t>(i),
                      names.try_emplace(run.kernels[i].name, number).first->second});
  }
  return result;
}

std::vector<Symbol> sequence(const std::vector<Symbol>& symbols,
                             const std::vector<run::KernelId>& kernels, const Members& members) {
  std::vector<Symbol> result;
  result.reserve(members.size());
  for (const std::size_t i : members) result.push_back(symbols[kernels[i].index()]);
  return result;
}

std::map<std::uint32_t, Members> by(const std::vector<std::uint32_t>& key) {
  std::map<std::uint32_t, Members> groups;
  for (std::size_t i = 0; i < key.size(); ++i) groups[key[i]].push_back(i);
  return groups;
}

// The step whose kernels most other steps repeat exactly; the latest of equals, as the warmest.
Members most_repeated(const run::KernelSeries& series,
                      const std::map<std::uint32_t, Members>& steps) {
  std::map<std::vector<std::uint32_t>, std::size_t> seen;
  const Members* best = nullptr;
  std::size_t most = 0;
  for (const auto& [step, members] : steps) {
    std::vector<std::uint32_t> kernels;
    for (const std::size_t i : members) kernels.push_back(series.kernel[i].value);
    if (const std::size_t times = ++seen[kernels]; times >= most) {
      most = times;
      best = &members;
    }
  }
  return best == nullptr ? Members{} : *best;
}

}  // namespace

Template step_template(const run::Run& run, const run::Block& block) {
  const run::KernelSeries& series = block.order_kernels;
  const auto steps = by(series.step);
  const Members base = most_repeated(series, steps);
  const std::vector<Symbol> symbol = symbols(run);
  const std::vector<Symbol> pattern = sequence(symbol, series.kernel, base);

  // Every step votes on the operator of each place.
  std::vector<std::map<run::OperatorId, std::size_t>> votes(base.size());
  for (const auto& [step, members] : steps) {
    const auto positions = walk(pattern, sequence(symbol, series.kernel, members));
    for (std::size_t i = 0; i < positions.size(); ++i)
      if (positions[i] != kUnmatched)
        ++votes[static_cast<std::size_t>(positions[i]) % base.size()][series.op[members[i]]];
  }
  Template result;
  for (std::size_t place = 0; place < base.size(); ++place) {
    const std::size_t i = base[place];
    run::OperatorId op = series.op[i];
    std::size_t most = votes[place][op];
    for (const auto& [other, count] : votes[place])
      if (count > most) std::tie(op, most) = std::pair(other, count);
    result.kernel.push_back(series.kernel[i]);
    result.op.push_back(op);
    result.stream.push_back(series.stream[i]);
    result.seconds.push_back(to_seconds(series.duration[i]).value);
  }
  return result;
}

Recognition recognise(const run::Run& run, const run::Block& block, const Template& step) {
  const run::KernelSeries& trace = block.trace_kernels;
  Recognition result;
  result.op.resize(trace.size());
  result.kernels_per_call.resize(run.operators.size());
  for (const run::OperatorId op : step.op)
    if (op.valid()) ++result.kernels_per_call[op.index()];

  // Streams run side by side, so each is followed by itself; a stream that the order pass did not
  // have is held against the whole step.
  const std::vector<Symbol> symbol = symbols(run);
  const auto streams = by(trace.stream);
  auto parts = by(step.stream);
  Members whole(step.size());
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = i;
  const bool apart = streams.size() > 1 && parts.size() > 1;

  double all = 0, known = 0, most = -1;
  for (const auto& [stream, members] : streams) {
    const auto found = parts.find(stream);
    const Members& places = apart && found != parts.end() ? found->second : whole;
    if (places.empty()) continue;
    const auto positions =
        walk(sequence(symbol, step.kernel, places), sequence(symbol, trace.kernel, members));

    double lap = 0;
    std::vector<double> before;
    for (const std::size_t place : places) {
      before.push_back(lap);
      lap += step.seconds[place];
    }
    double busy = 0;
    std::vector<Mark> marks;
    for (std::size_t k = 0; k < members.size(); ++k) {
      if (positions[k] == kUnmatched) continue;
      const auto position = static_cast<std::size_t>(positions[k]);
      const std::size_t laps = position / places.size();  // whole steps before this one
      const std::size_t here = position % places.size();
      const std::size_t i = members[k];
      const double seconds = to_seconds(trace.duration[i]).value;
      result.op[i] = step.op[places[here]];
      busy += seconds;
      if (lap > 0)
        marks.push_back({trace.start[i], static_cast<double>(laps) + before[here] / lap,
                         step.seconds[places[here]] / lap, seconds});
    }
    // The busiest stream tells how far the run is.
    if (busy > most) {
      most = busy;
      result.marks = std::move(marks);
    }
  }
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const double seconds = to_seconds(trace.duration[i]).value;
    all += seconds;
    if (result.op[i].valid()) known += seconds;
  }
  result.share = all > 0 ? known / all : 1;
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
