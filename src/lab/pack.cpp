// Packing a block. Three joins are made here and nowhere else: a kernel's correlation id leads to
// the operator call that launched it (order pass); an operator call of the order pass is the
// operator of the values pass with the same index and name (a program whose steps differ is aligned
// by names, and the misfits counted); and what later blocks call by name becomes the ids of the
// first. Kernels are sorted by their start, since device buffers arrive in any order.
#include "lab/pack.h"

#include <algorithm>
#include <joulediff/record.h>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "lab/align.h"
#include "lab/found_steps.h"
#include "lab/kernel_ids.h"
#include "lab/pack_program.h"
#include "lab/stack_tree.h"
#include "lab/symbols.h"
#include "run/names.h"

namespace joulediff::lab {
namespace {

constexpr std::string_view kStatic = "joulediff.static";
constexpr std::string_view kIdle = "joulediff.idle";

// For each step of the order pass: the operator of the run that each index is.
class OrderSteps {
 public:
  OrderSteps(const run::Run& run, const SpoolContents& spool) : first_new_(run.operators.size()) {
    for (std::size_t i = 0; i < run.operators.size(); ++i) {
      const run::Operator& op = run.operators[i];
      if (is_of_order_alone(op))
        known_[op.arguments] = static_cast<std::uint32_t>(i);
      else
        reference_.push_back(op.name);  // these come first
    }
    std::map<std::uint32_t, std::string> inputs;
    std::string values_inputs;
    for (const spool::Step& step : spool.steps) {
      const auto text = spool.inputs.find(step.inputs);
      if (text == spool.inputs.end()) continue;
      inputs[step.index] = text->second;
      if (step.pass == JD_VALUES) values_inputs = text->second;
    }
    std::map<std::uint32_t, std::uint32_t> lengths;
    for (const spool::OpTime& time : spool.operator_times)
      lengths[time.step] = std::max(lengths[time.step], time.index + 1);
    for (const spool::Correlation& correlation : spool.correlations)
      lengths[correlation.step] = std::max(lengths[correlation.step], correlation.index + 1);
    std::vector<SpoolOperatorName> names = spool.operator_names;
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return std::tie(a.step, a.index, a.name) < std::tie(b.step, b.index, b.name);
    });
    std::vector<std::string_view> current;
    auto next = names.begin();
    for (const auto& [step, length] : lengths) {
      // A name is spooled where it differs from that of the step before.
      for (; next != names.end() && next->step <= step; ++next) {
        if (next->index >= current.size()) current.resize(next->index + 1);
        current[next->index] = next->name;
      }
      if (current.size() < length) current.resize(length);
      partners_[step] = align(reference_, std::span(current).first(length));
      operators_ += length;
      const auto strangers = std::ranges::count(partners_[step], kNoPartner);
      strangers_ += static_cast<std::uint64_t>(strangers);
      if (values_inputs.empty() || inputs[step].empty() || inputs[step] == values_inputs)
        unexpected_ += static_cast<std::uint64_t>(strangers);
      name_strangers(inputs[step], current, partners_[step]);
    }
  }

  // Adds the operators that no step of the values pass had, without values.
  void add_strangers(run::Run& run) const {
    run.operators.insert(run.operators.end(), new_.begin(), new_.end());
  }

  run::OperatorId find(std::uint32_t step, std::uint32_t index) const {
    const auto partners = partners_.find(step);
    if (partners == partners_.end() || index >= partners->second.size()) return {};
    const std::uint32_t partner = partners->second[index];
    return partner == kNoPartner ? run::OperatorId() : run::OperatorId(partner);
  }
  std::uint64_t operators() const { return operators_; }
  // Those that no step of the values pass had, and those of them on inputs that it did have.
  std::uint64_t strangers() const { return strangers_; }
  std::uint64_t unexpected() const { return unexpected_; }

 private:
  static constexpr std::string_view kOfOrderAlone = R"({"of_order_alone":)";
  static bool is_of_order_alone(const run::Operator& op) {
    return op.arguments.starts_with(kOfOrderAlone);
  }

  // The same call of the same inputs is the same operator in every step and block.
  void name_strangers(const std::string& inputs, std::span<const std::string_view> names,
                      std::vector<std::uint32_t>& partners) {
    constexpr std::size_t kMost = 100'000;  // a program whose every step is another
    std::map<std::string_view, std::uint32_t> seen;
    for (std::size_t i = 0; i < partners.size(); ++i) {
      if (partners[i] != kNoPartner || names[i].empty() || known_.size() >= kMost) continue;
      const nlohmann::json which = {inputs, names[i], seen[names[i]]++};
      const std::string arguments =
          std::string(kOfOrderAlone) +
          which.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "}";
      const auto number = static_cast<std::uint32_t>(first_new_ + new_.size());
      const auto [known, fresh] = known_.try_emplace(arguments, number);
      partners[i] = known->second;
      if (!fresh) continue;
      run::Operator& op = new_.emplace_back();
      op.name = names[i];
      op.arguments = arguments;
    }
  }

  const std::size_t first_new_;
  std::vector<run::Operator> new_;
  std::map<std::string, std::uint32_t> known_;  // operators of the order pass alone
  std::vector<std::string_view> reference_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> partners_;
  std::uint64_t operators_ = 0;
  std::uint64_t strangers_ = 0;
  std::uint64_t unexpected_ = 0;
};

// The texts of a spool's inputs as those of the run.
class InputIds {
 public:
  InputIds(run::Run& run, const SpoolContents& spool) : run_(run), texts_(spool.inputs) {}
  run::InputsId find(std::uint32_t id) {
    const auto text = texts_.find(id);
    if (text == texts_.end()) return {};
    const auto same = std::ranges::find(run_.inputs, text->second, &run::Inputs::text);
    const run::InputsId found(static_cast<std::size_t>(same - run_.inputs.begin()));
    if (same == run_.inputs.end()) run_.inputs.push_back({text->second});
    return found;
  }

 private:
  run::Run& run_;
  const std::map<std::uint32_t, std::string>& texts_;
};

// The devices of a process by the numbers that it gives them.
class DeviceIds {
 public:
  DeviceIds(run::Run& run, const SpoolContents& spool) {
    for (const SpoolDevice& spooled : spool.devices) {
      const auto same = std::ranges::find(run.devices, spooled.device.uuid, &run::Device::uuid);
      ids_[spooled.ordinal] = run::DeviceId(static_cast<std::size_t>(same - run.devices.begin()));
      if (same == run.devices.end()) run.devices.push_back(spooled.device);
    }
  }
  run::DeviceId find(std::uint32_t ordinal) const {
    const auto found = ids_.find(ordinal);
    return found == ids_.end() ? run::DeviceId() : found->second;
  }

 private:
  std::map<std::uint32_t, run::DeviceId> ids_;
};

void add_steps(run::Run& run, run::Block& block, const SpoolContents& spool) {
  InputIds inputs(run, spool);
  for (const spool::Step& step : spool.steps) {
    if (step.pass > static_cast<std::uint32_t>(run::Pass::replay) || step.end_ns < step.begin_ns)
      diagnose(run, Severity::warning, "record.bad_step", "steps without a pass or a duration");
    else
      block.steps.push_back({static_cast<run::Pass>(step.pass), step.index,
                             static_cast<Nanoseconds>(step.begin_ns),
                             static_cast<Nanoseconds>(step.end_ns), inputs.find(step.inputs)});
  }
}

void add_synchronisations(run::Block& block, const SpoolContents& spool) {
  std::vector<spool::Synchronisation> waits = spool.synchronisations;
  std::ranges::stable_sort(waits, {}, &spool::Synchronisation::start_ns);
  for (const spool::Synchronisation& wait : waits) {
    if (wait.end_ns < wait.start_ns) continue;
    const bool known = wait.kind < run::kNames<run::SynchronisationKind>.size();
    block.synchronisations.kind.push_back(known ? static_cast<run::SynchronisationKind>(wait.kind)
                                                : run::SynchronisationKind::other);
    block.synchronisations.start.push_back(static_cast<Nanoseconds>(wait.start_ns));
    block.synchronisations.duration.push_back(
        static_cast<Nanoseconds>(wait.end_ns - wait.start_ns));
    block.synchronisations.stream.push_back(wait.stream);
  }
}

// A pass's kernels are those of its steps. A recorder that nobody attends to until the first step
// has recorded what came before, too.
struct Window {
  Nanoseconds begin = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds end = std::numeric_limits<Nanoseconds>::max();
};
Window window_of(run::Pass pass, const run::Block& block) {
  Window window;
  bool found = false;
  for (const run::Step& step : block.steps) {
    if (step.pass != pass) continue;
    if (!found) window = {step.begin, step.end};
    window = {std::min(window.begin, step.begin), std::max(window.end, step.end)};
    found = true;
  }
  return window;
}

// The step of the order pass that runs at `time`; 0 between steps.
std::uint32_t order_step_at(const run::Block& block, Nanoseconds time) {
  for (const run::Step& step : block.steps)
    if (step.pass == run::Pass::order && step.begin <= time && time < step.end) return step.index;
  return 0;
}

// The native call paths of a process's launches, by correlation id.
class LaunchStacks {
 public:
  LaunchStacks(run::Run& run, const SpoolContents& spool) {
    if (spool.launch_stacks.empty()) return;
    Symbols symbols(spool.modules);
    StackTree tree(run);
    std::map<std::uint32_t, run::StackId> stacks;
    for (const auto& [id, addresses] : spool.native_stacks)
      stacks[id] = tree.find(symbols.call_path(addresses));
    for (const spool::LaunchStack& launch : spool.launch_stacks)
      if (const auto stack = stacks.find(launch.stack); stack != stacks.end())
        by_correlation_[launch.correlation] = stack->second;
  }
  bool empty() const { return by_correlation_.empty(); }
  run::StackId find(std::uint32_t correlation) const {
    const auto found = by_correlation_.find(correlation);
    return found == by_correlation_.end() ? run::StackId() : found->second;
  }

 private:
  std::unordered_map<std::uint32_t, run::StackId> by_correlation_;
};

void add_kernels(run::Run& run, run::Block& block, const SpoolContents& spool,
                 const OrderSteps& order) {
  std::unordered_map<std::uint32_t, const spool::Correlation*> launched_by;
  for (const spool::Correlation& correlation : spool.correlations)
    launched_by[correlation.correlation] = &correlation;
  std::vector<spool::Kernel> kernels = spool.kernels;
  std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start_ns, a.correlation) < std::tie(b.start_ns, b.correlation);
  });
  KernelIds ids(run);
  const DeviceIds devices(run, spool);
  const LaunchStacks stacks(run, spool);
  const Window trace = window_of(run::Pass::trace, block);
  const Window order_pass = window_of(run::Pass::order, block);
  for (const spool::Kernel& kernel : kernels) {
    const auto name = spool.kernel_names.find(kernel.name);
    const bool in_order = kernel.pass == static_cast<std::uint32_t>(run::Pass::order);
    if (!in_order && kernel.pass != static_cast<std::uint32_t>(run::Pass::trace)) continue;
    if (kernel.end_ns < kernel.start_ns || name == spool.kernel_names.end() || kernel.kind > 2) {
      diagnose(run, Severity::warning, "record.bad_kernel",
               "kernels without a name or a duration are left out");
      continue;
    }
    const auto start = static_cast<Nanoseconds>(kernel.start_ns);
    const Window& window = in_order ? order_pass : trace;
    if (start < window.begin || start >= window.end) continue;
    run::KernelSeries& series = in_order ? block.order_kernels : block.trace_kernels;
    series.kernel.push_back(ids.find({name->second,
                                      {kernel.grid[0], kernel.grid[1], kernel.grid[2]},
                                      {kernel.block[0], kernel.block[1], kernel.block[2]},
                                      static_cast<run::KernelKind>(kernel.kind)}));
    series.start.push_back(start);
    series.duration.push_back(static_cast<Nanoseconds>(kernel.end_ns - kernel.start_ns));
    series.stream.push_back(kernel.stream);
    if (in_order && !stacks.empty()) series.stack.push_back(stacks.find(kernel.correlation));
    if (!spool.devices.empty()) series.device.push_back(devices.find(kernel.device));
    const auto launch = in_order ? launched_by.find(kernel.correlation) : launched_by.end();
    if (launch != launched_by.end()) {
      series.op.push_back(order.find(launch->second->step, launch->second->index));
      series.step.push_back(launch->second->step);
    } else {
      series.op.emplace_back();
      series.step.push_back(in_order ? order_step_at(block, series.start.back()) : 0);
    }
  }
}

// An operator whose plug-in says no call path has that of its kernels' launches.
void give_native_stacks(run::Run& run, const run::KernelSeries& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!order.op[i].valid() || !order.stack_of(i).valid()) continue;
    run::Operator& op = run.operators[order.op[i].index()];
    if (!op.stack.valid()) op.stack = order.stack_of(i);
  }
}

void add_operator_times(run::Block& block, const SpoolContents& spool, const OrderSteps& order) {
  for (const spool::OpTime& time : spool.operator_times) {
    const run::OperatorId op = order.find(time.step, time.index);
    if (!op.valid() || time.end_ns < time.begin_ns) continue;
    block.operator_times.op.push_back(op);
    block.operator_times.step.push_back(time.step);
    block.operator_times.begin.push_back(static_cast<Nanoseconds>(time.begin_ns));
    block.operator_times.end.push_back(static_cast<Nanoseconds>(time.end_ns));
  }
}

void add_replays(run::Run& run, run::Block& block, const SpoolContents& spool) {
  std::map<std::string_view, run::SignatureId> signatures;
  for (std::size_t i = 0; i < run.signatures.size(); ++i)
    signatures.emplace(run.signatures[i].text, run::SignatureId(i));
  for (const SpoolReplay& spooled : spool.replays) {
    run::Replay replay{run::ReplayKind::op, {}, spooled.begin, spooled.end, spooled.count};
    if (spooled.signature == kStatic || spooled.signature == kIdle) {
      replay.kind =
          spooled.signature == kStatic ? run::ReplayKind::static_power : run::ReplayKind::idle;
    } else if (const auto found = signatures.find(spooled.signature); found != signatures.end()) {
      replay.signature = found->second;
    } else {
      diagnose(run, Severity::warning, "record.unknown_replay",
               "replays of operators that the first block's values pass did not see");
      continue;
    }
    if (replay.end <= replay.begin) continue;
    block.replays.push_back(replay);
  }
}

// The processes that made steps, the one that says what the program is first: it has operators, is
// of the lowest rank, and began to step first.
std::vector<const SpoolContents*> stepping_processes(const std::vector<SpoolContents>& spools) {
  const auto place = [](const SpoolContents& spool) {
    std::uint64_t first = ~0ull;
    for (const spool::Step& step : spool.steps) first = std::min(first, step.begin_ns);
    return std::tuple(spool.operators.empty(), rank_of(spool).value_or(0), first);
  };
  std::vector<const SpoolContents*> all;
  for (const SpoolContents& spool : spools)
    if (!spool.steps.empty()) all.push_back(&spool);
  std::ranges::stable_sort(all, {}, [&](const SpoolContents* spool) { return place(*spool); });
  return all;
}

// Where no process marked a step, its kernels tell.
void find_missing_steps(std::vector<SpoolContents>& spools) {
  if (std::ranges::any_of(spools, [](const SpoolContents& s) { return !s.steps.empty(); })) return;
  for (SpoolContents& spool : spools)
    if (auto found = with_found_steps(spool)) spool = std::move(*found);
}

bool was_traced(const SpoolContents& spool) {
  return std::ranges::find(spool.steps, std::uint32_t{JD_TRACE}, &spool::Step::pass) !=
         spool.steps.end();
}

// How far the processes came.
std::string how_far(const std::vector<SpoolContents>& spools) {
  const spool::Step* last = nullptr;
  for (const SpoolContents& each : spools)
    for (const spool::Step& step : each.steps)
      if (step.pass < run::kNames<run::Pass>.size() && (!last || step.end_ns > last->end_ns))
        last = &step;
  if (!last) return "before its first step";
  return fmt::format("after step {} ({})", last->index, run::kNames<run::Pass>[last->pass]);
}

// Why there is nothing to pack, and what a person can do about it.
Error nothing_recorded(const Recorded& recorded) {
  if (recorded.launched.cut)
    return {ExitCode::bad_input, "the recording ended before a step was recorded: record it again"};
  const int status = recorded.launched.exit_status;
  const std::string ended = recorded.launched.interrupted ? "the program was interrupted"
                            : status != 0
                                ? "the program ended with status " + std::to_string(status)
                                : "";
  if (!ended.empty())
    return {ExitCode::bad_input, ended +
                                     " before a step was recorded: run it without joulediff "
                                     "first, or record fewer --steps"};
  if (recorded.spools.empty() && !recorded.strangers.empty())
    return {ExitCode::bad_input, "the program left no spool that can be read (" +
                                     recorded.strangers.front() + "): record it again"};
  if (recorded.spools.empty())
    return {ExitCode::environment,
            "the program never loaded the recorder: it is no Python program with PyTorch that our "
            "plug-ins watch (python -S and -I switch them off), nor does it call "
            "joulediff/record.h"};
  return {ExitCode::bad_input,
          "the program made no step that could be recorded: name what a step is with --region "
          "module:qualname, or call joulediff.torch.steps(n) in its loop"};
}

void tell_imperfections(run::Run& run, const Recorded& recorded) {
  for (const SpoolContents& each : recorded.spools) {
    take_diagnostics(run, each);
    if (each.torn)
      diagnose(run, Severity::warning, "record.torn_spool",
               "a process's recording ends in a torn record; what lies before it is kept");
    if (each.damaged_records > 0)
      diagnose(run, Severity::warning, "record.damaged_records",
               "records that have not the form of their type are left out", each.damaged_records);
  }
  for (const std::string& stranger : recorded.strangers)
    diagnose(run, Severity::warning, "record.bad_spool", "unreadable spool " + stranger);
  const Launched& launched = recorded.launched;
  const std::string far = how_far(recorded.spools);
  if (launched.cut)
    diagnose(
        run, Severity::warning, "record.cut",
        fmt::format("the recording was killed {} into its process {}, {}; what was recorded "
                    "until then is kept",
                    format(to_seconds(launched.end - launched.begin)), recorded.order + 1, far));
  else if (launched.interrupted)
    diagnose(run, Severity::warning, "record.interrupted",
             fmt::format("the program was interrupted {}; what it had recorded is kept", far));
  else if (launched.stopped)
    diagnose(
        run, Severity::note, "record.stopped",
        fmt::format("the program was ended {}, when its passes were made, as --stop asks", far));
  else if (launched.exit_status != 0)
    diagnose(run, Severity::warning, "record.program_failed",
             fmt::format("the program ended with status {} {}; what it had recorded is kept",
                         launched.exit_status, far));
  if (!launched.left_behind.empty())
    diagnose(run, Severity::warning, "record.left_behind",
             fmt::format("processes that stayed when the program had ended were ended: {}",
                         fmt::join(launched.left_behind, ", ")),
             launched.left_behind.size());
}

// What one process recorded of its passes.
void add_process(run::Run& run, run::Block& block, const SpoolContents& spool,
                 const OrderSteps& order) {
  block.dropped_kernels = spool.dropped_kernels;
  if (block.dropped_kernels > 0)
    diagnose(run, Severity::warning, "record.dropped_kernels",
             "kernels that the device's buffers lost", block.dropped_kernels);
  if (order.unexpected() > 0)
    diagnose(run, Severity::warning, "record.order_differs",
             "operators of the order pass that the values pass did not make (of " +
                 std::to_string(order.operators()) + "): the program's steps differ",
             order.unexpected());
  add_steps(run, block, spool);
  add_kernels(run, block, spool, order);
  give_native_stacks(run, block.order_kernels);
  add_operator_times(block, spool, order);
  add_synchronisations(block, spool);
  add_replays(run, block, spool);
}

}  // namespace

void diagnose(run::Run& run, Severity severity, std::string rule, std::string message,
              std::uint64_t count) {
  for (Diagnostic& earlier : run.diagnostics)
    if (earlier.rule == rule && earlier.message == message) {
      earlier.count += count;
      return;
    }
  run.diagnostics.push_back({severity, std::move(rule), std::move(message), count});
}

Status add_launch(run::Run& run, Recorded recorded) {
  find_missing_steps(recorded.spools);
  const std::vector<const SpoolContents*> processes = stepping_processes(recorded.spools);
  if (processes.empty()) return fail(nothing_recorded(recorded));
  const SpoolContents& leader = *processes.front();
  if (run.blocks.empty() && leader.operators.empty())
    return fail(ExitCode::bad_input,
                recorded.launched.exit_status != 0
                    ? "the program ended with status " +
                          std::to_string(recorded.launched.exit_status) +
                          " before its operators were recorded"
                    : "no operators were recorded: the passes must begin with values, and the "
                      "program must make a step after its first");
  if (run.blocks.empty()) take_program(run, leader);
  tell_imperfections(run, recorded);

  run::Block launch;
  launch.order = recorded.order;
  launch.begin = recorded.launched.begin;
  launch.end = recorded.launched.end;
  // How a program ends that we ended says nothing of it.
  launch.exit_status = recorded.launched.stopped ? 0 : recorded.launched.exit_status;
  const std::size_t first = run.blocks.size();
  std::uint64_t others = 0;
  for (const SpoolContents* process : processes) {
    const OrderSteps order(run, *process);
    // Another rank makes the operators of the first; what does not is another program.
    const bool same_program = rank_of(*process) || 2 * order.strangers() < order.operators();
    if (process != &leader && (!same_program || (was_traced(leader) && !was_traced(*process)))) {
      ++others;
      continue;
    }
    order.add_strangers(run);
    run::Block block = launch;
    block.rank = rank_of(*process).value_or(static_cast<std::uint32_t>(run.blocks.size() - first));
    block.pid = process->pid;
    add_process(run, block, *process, order);
    run.blocks.push_back(std::move(block));
  }
  run.blocks[first].series = std::move(recorded.launched.series);
  if (others > 0)
    diagnose(run, Severity::warning, "record.other_processes",
             "other processes of the program made steps of another kind, or too few; they are left "
             "out: name the one to record with --region",
             others);
  return {};
}

}  // namespace joulediff::lab
