// Everything that a rank's run numbers (frames, signatures, kernels, devices, operators) is entered
// in the first's by what it is, and its blocks are rewritten with the numbers that come out.
#include "lab/merge.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/align.h"
#include "lab/diagnostics.h"
#include "lab/kernel_ids.h"
#include "lab/pack.h"
#include "lab/stack_tree.h"

namespace joulediff::lab {
namespace {

tl::unexpected<Error> refuse(std::string message) {
  return fail(ExitCode::bad_input, "merge: " + std::move(message));
}

std::string fact(const run::Run& run, const char* key) {
  const auto found = run.manifest.facts.find(key);
  return found == run.manifest.facts.end() ? "" : found->second;
}

template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What to add to a run's times to have them on the clock of `first`: one boot of one machine has
// one monotonic clock, and others meet by wall time.
Result<Nanoseconds> shift_onto(const run::Run& first, const run::Run& other) {
  const std::string boot = fact(first, kBootFact);
  if (!boot.empty() && boot == fact(other, kBootFact)) return 0;
  const auto here = number_in<Nanoseconds>(fact(first, kWallClockFact));
  const auto there = number_in<Nanoseconds>(fact(other, kWallClockFact));
  if (!here || !there)
    return refuse(
        "a run does not say its wall time, so the clocks of two machines cannot be joined: "
        "record it again with this joulediff");
  return *there - *here;
}

Status check_same_work(const run::Run& first, const run::Run& other, std::size_t at) {
  const auto differ = [&](std::string_view what, std::string_view a, std::string_view b) {
    return refuse(fmt::format("run {} has the {} {}, run 1 {}: ranks do the same work", at + 1,
                              what, printable(b), printable(a)));
  };
  const run::Manifest &a = first.manifest, &b = other.manifest;
  if (a.work.unit != b.work.unit) return differ("work unit", a.work.unit, b.work.unit);
  if (a.framework != b.framework) return differ("framework", a.framework, b.framework);
  if (a.pair != b.pair || a.side != b.side)
    return refuse(fmt::format(
        "run {} is of another pair or side than run 1: merge each side's ranks", at + 1));
  return {};
}

// What a process tree used is each launch's own; all else is the machine's.
bool is_of_the_launch(run::Source source) {
  return source == run::Source::host_cpu;
}

// The channel of a launch's own series: the rank of the block that has it. One that was merged
// before has those of several launches, which keep their distance.
void name_channel(run::Series& series, std::uint32_t rank, std::uint32_t shift) {
  constexpr std::string_view kRank = "rank ";
  if (!is_of_the_launch(series.source)) return;
  const auto merged_before = series.channel.starts_with(kRank)
                                 ? number_in<std::uint32_t>(series.channel.substr(kRank.size()))
                                 : std::nullopt;
  series.channel = fmt::format("{}{}", kRank, merged_before ? *merged_before + shift : rank);
}

// A rank's numbers as those of the merged run.
class Entry {
 public:
  Entry(run::Run& merged, const run::Run& rank) : merged_(merged), rank_(rank) {
    enter_names();
    enter_operators();
  }

  void blocks(std::vector<run::Block> blocks, std::uint32_t rank, Nanoseconds shift,
              const std::string& host) {
    for (run::Block& block : blocks) {
      block.rank += rank;
      for (run::Series& series : block.series) name_channel(series, block.rank, rank);
      if (block.host.empty()) block.host = host;
      move(block, shift);
      renumber(block.order_kernels);
      renumber(block.trace_kernels);
      for (run::OperatorId& op : block.operator_times.op) op = operators_[op.index()];
      for (run::Replay& replay : block.replays)
        if (replay.signature.valid()) replay.signature = signatures_[replay.signature.index()];
      for (run::Step& step : block.steps)
        if (step.inputs.valid()) step.inputs = inputs_[step.inputs.index()];
      merged_.blocks.push_back(std::move(block));
    }
  }

 private:
  // The place of each element of `theirs` in `ours`, to which what is new is added.
  template <class I, class T, class Key>
  static std::vector<I> enter(std::vector<T>& ours, const std::vector<T>& theirs, Key key) {
    std::map<std::string_view, std::size_t> known;
    std::vector<I> places;
    ours.reserve(ours.size() + theirs.size());  // views into its strings stay good
    for (std::size_t i = 0; i < ours.size(); ++i) known.emplace(key(ours[i]), i);
    for (const T& one : theirs) {
      const auto found = known.find(key(one));
      places.push_back(I(found == known.end() ? ours.size() : found->second));
      if (found != known.end()) continue;
      ours.push_back(one);
      known.emplace(key(ours.back()), ours.size() - 1);
    }
    return places;
  }

  void enter_names() {
    signatures_ =
        enter<run::SignatureId>(merged_.signatures, rank_.signatures,
                                [](const run::Signature& s) { return std::string_view(s.text); });
    devices_ = enter<run::DeviceId>(merged_.devices, rank_.devices,
                                    [](const run::Device& d) { return std::string_view(d.uuid); });
    inputs_ = enter<run::InputsId>(merged_.inputs, rank_.inputs,
                                   [](const run::Inputs& i) { return std::string_view(i.text); });
    KernelIds kernels(merged_);
    for (const run::Kernel& kernel : rank_.kernels) kernels_.push_back(kernels.find(kernel));
    StackTree tree(merged_);
    for (std::size_t i = 0; i < rank_.stacks.size(); ++i) {
      std::vector<run::Frame> path;
      for (const run::FrameId frame : run::call_path(rank_, run::StackId(i)))
        path.push_back(rank_.frames[frame.index()]);
      stacks_.push_back(tree.find(path));
    }
  }

  void enter_operators() {
    const auto names = [](const run::Run& run) {
      std::vector<std::string_view> all;
      for (const run::Operator& op : run.operators) all.emplace_back(op.name);
      return all;
    };
    const std::vector<std::string_view> ours = names(merged_), theirs = names(rank_);
    const std::vector<std::uint32_t> partners = align(ours, theirs);
    const auto strangers = std::ranges::count(partners, kNoPartner);
    if (2 * static_cast<std::size_t>(strangers) <= theirs.size()) {
      for (const std::uint32_t partner : partners)
        operators_.push_back(partner == kNoPartner ? run::OperatorId() : run::OperatorId(partner));
      return;
    }
    add_operators();
  }

  // Another part of the program: its values are others than ours.
  void add_operators() {
    std::uint64_t storages = 0;
    for (const run::Tensor& tensor : merged_.tensors)
      storages = std::max(storages, tensor.storage + 1);
    const std::size_t first_tensor = merged_.tensors.size();
    for (run::Tensor tensor : rank_.tensors) {
      tensor.storage += storages;
      merged_.tensors.push_back(std::move(tensor));
    }
    const std::size_t first = merged_.operators.size();
    for (run::Operator op : rank_.operators) {
      for (std::vector<run::TensorId>* tensors : {&op.inputs, &op.outputs})
        for (run::TensorId& tensor : *tensors)
          tensor = run::TensorId(first_tensor + tensor.index());
      if (op.signature.valid()) op.signature = signatures_[op.signature.index()];
      if (op.stack.valid()) op.stack = stacks_[op.stack.index()];
      if (op.forward.valid()) op.forward = run::OperatorId(first + op.forward.index());
      operators_.emplace_back(merged_.operators.size());
      merged_.operators.push_back(std::move(op));
    }
  }

  static void move(run::Block& block, Nanoseconds shift) {
    const auto all = [shift](std::vector<Nanoseconds>& times) {
      for (Nanoseconds& time : times) time += shift;
    };
    block.begin += shift;
    block.end += shift;
    for (run::Step& step : block.steps) step.begin += shift, step.end += shift;
    for (run::Replay& replay : block.replays) replay.begin += shift, replay.end += shift;
    all(block.order_kernels.start);
    all(block.trace_kernels.start);
    all(block.operator_times.begin);
    all(block.operator_times.end);
    all(block.synchronisations.start);
    for (run::Series& series : block.series) all(series.time);
  }

  void renumber(run::KernelSeries& series) const {
    for (run::KernelId& kernel : series.kernel) kernel = kernels_[kernel.index()];
    for (run::OperatorId& op : series.op)
      if (op.valid()) op = operators_[op.index()];
    for (run::DeviceId& device : series.device)
      if (device.valid()) device = devices_[device.index()];
    for (run::StackId& stack : series.stack)
      if (stack.valid()) stack = stacks_[stack.index()];
  }

  run::Run& merged_;
  const run::Run& rank_;
  std::vector<run::SignatureId> signatures_;
  std::vector<run::DeviceId> devices_;
  std::vector<run::InputsId> inputs_;
  std::vector<run::KernelId> kernels_;
  std::vector<run::StackId> stacks_;
  std::vector<run::OperatorId> operators_;
};

// Blocks by launch and rank, and each launch's series in its first block of a host, once.
void gather_series(run::Run& run) {
  std::ranges::stable_sort(
      run.blocks, {}, [](const run::Block& block) { return std::tuple(block.order, block.rank); });
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> first;
  for (std::size_t i = 0; i < run.blocks.size(); ++i) {
    run::Block& block = run.blocks[i];
    const auto [place, fresh] = first.try_emplace({block.order, block.host}, i);
    if (fresh) continue;
    std::vector<run::Series>& kept = run.blocks[place->second].series;
    for (run::Series& series : block.series) {
      const auto same = std::ranges::find_if(kept, [&](const run::Series& other) {
        return other.source == series.source && other.channel == series.channel;
      });
      if (same == kept.end())
        kept.push_back(std::move(series));
      else if (same->time.size() < series.time.size())
        *same = std::move(series);  // it watched longer
    }
    block.series.clear();
  }
}

void tell_settings(run::Run& merged, const run::Run& rank) {
  const auto differs = std::ranges::mismatch(merged.settings, rank.settings);
  if (differs.in1 == merged.settings.end() && differs.in2 == rank.settings.end()) return;
  const std::string& key =
      differs.in1 != merged.settings.end() ? differs.in1->key : differs.in2->key;
  diagnose(merged, Severity::warning, "merge.settings",
           fmt::format("the ranks have different settings, first {}; the first rank's are kept",
                       printable(key)));
}

// What to add to the ranks of each run: nothing where they differ as they are, as torchrun numbers
// them; else each run's come after those of the runs before it.
std::vector<std::uint32_t> first_ranks(const std::vector<run::Run>& runs) {
  std::set<std::uint32_t> seen;
  std::vector<std::uint32_t> counted;
  std::uint32_t next = 0;
  bool apart = true;
  for (const run::Run& run : runs) {
    std::set<std::uint32_t> own;
    for (const run::Block& block : run.blocks) own.insert(block.rank);
    for (const std::uint32_t rank : own) apart = seen.insert(rank).second && apart;
    counted.push_back(next);
    next += own.empty() ? 0 : *own.rbegin() + 1;
  }
  return apart ? std::vector<std::uint32_t>(runs.size(), 0) : counted;
}

Status check_given_once(const std::vector<run::Run>& runs) {
  std::set<std::tuple<std::string, std::uint32_t, std::uint32_t, Nanoseconds>> seen;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const run::Block& block : runs[i].blocks)
      if (!seen.emplace(fact(runs[i], "host"), block.order, block.pid, block.begin).second)
        return refuse(fmt::format("run {} was given before: give each rank's run once", i + 1));
  return {};
}

// Ranks of one launch run at once: there is no time in which recordings made one after the other
// could be read together.
Status check_made_at_once(const run::Run& merged) {
  struct Span {
    Nanoseconds latest_begin = std::numeric_limits<Nanoseconds>::min();
    Nanoseconds earliest_end = std::numeric_limits<Nanoseconds>::max();
  };
  std::map<std::uint32_t, Span> launches;
  for (const run::Block& block : merged.blocks) {
    Span& span = launches[block.order];
    span.latest_begin = std::max(span.latest_begin, block.begin);
    span.earliest_end = std::min(span.earliest_end, block.end);
    if (span.latest_begin >= span.earliest_end)
      return refuse(fmt::format(
          "the runs were not recorded at the same time (one began {} after another's end): "
          "start all ranks at once, each with a joulediff record",
          format(to_seconds(span.latest_begin - span.earliest_end))));
  }
  return {};
}

}  // namespace

Result<run::Run> merge(std::vector<run::Run> ranks) {
  if (ranks.size() < 2) return refuse("needs the runs of two ranks at least");
  JD_TRY(check_given_once(ranks));
  const std::vector<std::uint32_t> first = first_ranks(ranks);
  run::Run merged = ranks.front();
  merged.blocks.clear();
  bool by_wall_time = false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    run::Run& rank = ranks[i];
    JD_TRY(check_same_work(merged, rank, i));
    JD_ASSIGN(const Nanoseconds shift, i == 0 ? Result<Nanoseconds>(0) : shift_onto(merged, rank));
    by_wall_time = by_wall_time || shift != 0;
    Entry entry(merged, rank);
    entry.blocks(std::move(rank.blocks), first[i], shift, fact(rank, "host"));
    if (i == 0) continue;
    tell_settings(merged, rank);
    for (const Diagnostic& d : rank.diagnostics) diagnose(merged, d);
  }
  JD_TRY(check_made_at_once(merged));
  gather_series(merged);
  if (by_wall_time)
    diagnose(
        merged, Severity::note, "merge.clock",
        "ranks of different machines are joined by wall time, which is off by what their clocks "
        "are: a millisecond with NTP");
  merged.manifest.facts["ranks"] = std::to_string(ranks.size());
  return merged;
}

}  // namespace joulediff::lab
