// Steps of equal inputs should launch equal kernels. The sequence that most of them repeat is their
// template; a step that it does not explain, loops and chance insertions allowed, makes a variant.
// Every step then votes on the operator of each place, since an operator is known by what a marker
// said at the launch, and a marker may be late.
#include "attribute/templates.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace joulediff::attribute {
namespace {

// Of a step's kernels, for another's template to explain it: by name, and exactly.
constexpr double kExplained = 0.98;
constexpr double kExactly = 0.5;

struct OrderStep {
  run::InputsId inputs;
  std::uint32_t index = 0;
  std::vector<std::uint32_t> members;              // in time
  std::vector<std::uint32_t> lane;                 // of each member
  std::vector<std::vector<std::uint32_t>> strand;  // by lane
};

std::map<std::uint32_t, std::vector<std::uint32_t>> by_step(const run::KernelSeries& series) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> result;
  for (std::size_t i = 0; i < series.size(); ++i)
    result[series.step[i]].push_back(static_cast<std::uint32_t>(i));
  return result;
}

class Teacher {
 public:
  Teacher(const run::Run& run, const run::Block& block)
      : run_(run), block_(block), series_(block.order_kernels), symbols_(symbols(run)) {}

  Templates teach() {
    std::vector<OrderStep> steps = order_steps();
    std::ranges::sort(result_.untraced);
    const auto twice = std::ranges::unique(result_.untraced);
    result_.untraced.erase(twice.begin(), twice.end());
    std::map<run::InputsId, std::vector<const OrderStep*>> kinds;
    for (const OrderStep& step : steps) kinds[step.inputs].push_back(&step);
    for (const auto& [inputs, alike] : kinds) teach(alike);
    count_calls();
    return std::move(result_);
  }

 private:
  bool is_set(const run::KernelSeries& series, std::size_t i) const {
    return run_.kernels[series.kernel[i].index()].kind == run::KernelKind::set;
  }

  // The recorder does where they take next to nothing.
  bool trace_leaves_out_sets() const {
    const run::KernelSeries& trace = block_.trace_kernels;
    for (std::size_t i = 0; i < trace.size(); ++i)
      if (is_set(trace, i)) return false;
    return trace.size() > 0;
  }

  std::vector<OrderStep> order_steps() {
    std::map<std::uint32_t, run::InputsId> inputs;
    for (const run::Step& step : block_.steps)
      if (step.pass == run::Pass::order) inputs[step.index] = step.inputs;
    std::vector<OrderStep> steps;
    for (auto& [index, members] : by_step(series_)) {
      OrderStep step;
      if (const auto found = inputs.find(index); found != inputs.end()) step.inputs = found->second;
      step.index = index;
      for (const std::uint32_t i : members)
        if (!leaves_out_sets_ || !is_set(series_, i))
          step.members.push_back(i);
        else if (series_.op[i].valid())
          result_.untraced.push_back(series_.op[i]);
      if (step.members.empty()) continue;
      take_lanes(step);
      steps.push_back(std::move(step));
    }
    return steps;
  }

  void take_lanes(OrderStep& step) {
    std::vector<std::uint32_t> lane_of(series_.size() > 0 ? step.members.back() + 1 : 0);
    std::vector<bool> taken;
    for (Strand& strand : strands(series_, step.members)) {
      const Pattern content = sequence(symbols_, series_, strand.members);
      Lanes& lanes = result_.lanes;
      auto lane = lanes.of(strand.queue);
      if (!lane) lane = lanes.find(strand.queue, content);
      if (!lane || (*lane < taken.size() && taken[*lane])) lane = lanes.add(strand.queue, content);
      lanes.extend(*lane, content);
      taken.resize(std::max<std::size_t>(taken.size(), *lane + 1));
      step.strand.resize(taken.size());
      taken[*lane] = true;
      for (const std::uint32_t i : strand.members) lane_of[i] = *lane;
      step.strand[*lane] = std::move(strand.members);
    }
    for (const std::uint32_t i : step.members) step.lane.push_back(lane_of[i]);
  }

  // Steps of equal inputs, in order.
  void teach(const std::vector<const OrderStep*>& steps) {
    const std::size_t first = result_.steps.size();
    votes_.clear();
    for (const OrderStep* step : by_repeats(steps))
      if (!explained(*step, first)) add(*step);
    for (const OrderStep* step : steps) vote(*step, first);
    for (std::size_t t = first; t < result_.steps.size(); ++t)
      elect(result_.steps[t], votes_[t - first]);
  }

  // One step for each sequence, the most repeated first, and of equals the latest, as the warmest.
  std::vector<const OrderStep*> by_repeats(const std::vector<const OrderStep*>& steps) const {
    struct Seen {
      std::size_t times = 0;
      const OrderStep* latest = nullptr;
    };
    std::map<std::vector<std::vector<std::uint32_t>>, Seen> seen;
    for (const OrderStep* step : steps) {
      std::vector<std::vector<std::uint32_t>> kernels;
      for (const auto& strand : step->strand) {
        kernels.emplace_back();
        for (const std::uint32_t i : strand) kernels.back().push_back(series_.kernel[i].value);
      }
      Seen& one = seen[kernels];
      ++one.times;
      one.latest = step;
    }
    std::vector<Seen> order;
    order.reserve(seen.size());
    for (const auto& [kernels, one] : seen) order.push_back(one);
    std::ranges::sort(order, [](const Seen& a, const Seen& b) {
      return std::tuple(a.times, a.latest->index) > std::tuple(b.times, b.latest->index);
    });
    std::vector<const OrderStep*> result;
    result.reserve(order.size());
    for (const Seen& one : order) result.push_back(one.latest);
    return result;
  }

  void add(const OrderStep& step) {
    Template& one = result_.steps.emplace_back();
    one.inputs = step.inputs;
    one.lane = step.lane;
    for (const std::uint32_t i : step.members) {
      one.kernel.push_back(series_.kernel[i]);
      one.op.push_back(series_.op[i]);
      one.seconds.push_back(to_seconds(series_.duration[i]).value);
    }
    votes_.emplace_back(step.members.size());
  }

  // Visits each member of the step with its place in the templates from `first` on.
  template <class Visit>
  void align(const OrderStep& step, std::size_t first, Visit visit) const {
    const std::span<const Template> templates = std::span(result_.steps).subspan(first);
    for (std::uint32_t lane = 0; lane < step.strand.size(); ++lane) {
      const LanePatterns part = patterns(templates, symbols_, lane);
      const auto& strand = step.strand[lane];
      const Walk walked = walk(part.patterns, sequence(symbols_, series_, strand));
      for (std::size_t k = 0; k < strand.size(); ++k)
        if (const Place& at = walked.places[k]; at.found())
          visit(strand[k], at.pattern, part.places[at.pattern][at.place]);
    }
  }

  bool explained(const OrderStep& step, std::size_t first) const {
    std::size_t found = 0, exactly = 0;
    align(step, first, [&](std::uint32_t i, std::size_t which, std::size_t place) {
      ++found;
      if (result_.steps[first + which].kernel[place] == series_.kernel[i]) ++exactly;
    });
    const auto all = static_cast<double>(step.members.size());
    return static_cast<double>(found) >= kExplained * all &&
           static_cast<double>(exactly) >= kExactly * all;
  }

  void vote(const OrderStep& step, std::size_t first) {
    align(step, first, [&](std::uint32_t i, std::size_t which, std::size_t place) {
      ++votes_[which][place][series_.op[i]];
    });
  }

  using Votes = std::vector<std::map<run::OperatorId, std::size_t>>;
  static void elect(Template& one, Votes& votes) {
    for (std::size_t place = 0; place < one.size(); ++place) {
      std::size_t most = votes[place][one.op[place]];
      for (const auto& [op, count] : votes[place])
        if (count > most) std::tie(one.op[place], most) = std::pair(op, count);
    }
  }

  // A call is one of the step whose values were recorded, since that is what is replayed; a call on
  // other inputs is as much of it as its kernels' time.
  void count_calls() {
    std::vector<double> reference;
    run::InputsId inputs;
    for (const run::Step& step : block_.steps)
      if (step.pass == run::Pass::values) inputs = step.inputs;
    for (const Template& one : result_.steps)
      if (reference.empty() && inputs.valid() && one.inputs == inputs)
        reference = seconds_by_operator(one);
    for (Template& one : result_.steps) {
      std::vector<double> kernels(run_.operators.size());
      for (const run::OperatorId op : one.op)
        if (op.valid()) ++kernels[op.index()];
      const bool other = !reference.empty() && one.inputs != inputs;
      const std::vector<double> seconds = other ? seconds_by_operator(one) : std::vector<double>();
      for (const run::OperatorId op : one.op) {
        double calls = op.valid() ? 1 / kernels[op.index()] : 0;
        if (other && op.valid() && reference[op.index()] > 0)
          calls *= seconds[op.index()] / reference[op.index()];
        one.calls.push_back(calls);
      }
    }
  }

  std::vector<double> seconds_by_operator(const Template& one) const {
    std::vector<double> result(run_.operators.size());
    for (std::size_t place = 0; place < one.size(); ++place)
      if (one.op[place].valid()) result[one.op[place].index()] += one.seconds[place];
    return result;
  }

  const run::Run& run_;
  const run::Block& block_;
  const run::KernelSeries& series_;
  std::vector<Symbol> symbols_;
  const bool leaves_out_sets_ = trace_leaves_out_sets();
  Templates result_;
  std::vector<Votes> votes_;
};

}  // namespace

LanePatterns patterns(std::span<const Template> templates, const std::vector<Symbol>& symbols,
                      std::optional<std::uint32_t> lane) {
  LanePatterns result;
  for (const Template& one : templates) {
    Pattern& pattern = result.patterns.emplace_back();
    auto& places = result.places.emplace_back();
    for (std::size_t place = 0; place < one.size(); ++place) {
      if (lane && one.lane[place] != *lane) continue;
      pattern.push_back(symbols[one.kernel[place].index()]);
      places.push_back(static_cast<std::uint32_t>(place));
    }
  }
  return result;
}

Templates step_templates(const run::Run& run, const run::Block& block) {
  return Teacher(run, block).teach();
}

}  // namespace joulediff::attribute
