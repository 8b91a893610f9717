#include "lab/pack_kernels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "lab/diagnostics.h"
#include "lab/fused_kernels.h"
#include "lab/kernel_ids.h"
#include "lab/stack_tree.h"
#include "lab/symbols.h"

namespace joulediff::lab {
namespace {

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

// An operator whose plug-in says no call path has that of its kernels' launches.
void give_native_stacks(run::Run& run, const run::KernelSeries& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!order.op[i].valid() || !order.stack_of(i).valid()) continue;
    run::Operator& op = run.operators[order.op[i].index()];
    if (!op.stack.valid()) op.stack = order.stack_of(i);
  }
}

}  // namespace

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
  charge_by_name(run, block.order_kernels);
  give_native_stacks(run, block.order_kernels);
}

}  // namespace joulediff::lab
