#include "lab/pack_process.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lab/diagnostics.h"
#include "lab/pack_kernels.h"
#include "run/checks.h"
#include "run/names.h"

namespace joulediff::lab {
namespace {

constexpr std::string_view kStatic = "joulediff.static";
constexpr std::string_view kIdle = "joulediff.idle";
constexpr std::string_view kCold = "joulediff.cold ";  // before the operator's signature

bool is_window(std::uint64_t begin, std::uint64_t end) {
  return std::in_range<Nanoseconds>(begin) && std::in_range<Nanoseconds>(end) &&
         run::window(static_cast<Nanoseconds>(begin), static_cast<Nanoseconds>(end));
}

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

void add_steps(run::Run& run, run::Block& block, const SpoolContents& spool) {
  InputIds inputs(run, spool);
  for (const spool::Step& step : spool.steps) {
    if (step.pass > static_cast<std::uint32_t>(run::Pass::replay) ||
        !is_window(step.begin_ns, step.end_ns))
      diagnose(run, Severity::warning, "record.bad_step",
               "steps without a pass, or at times that cannot be, are left out");
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
    if (!is_window(wait.start_ns, wait.end_ns)) continue;
    const bool known = wait.kind < run::kNames<run::SynchronisationKind>.size();
    block.synchronisations.kind.push_back(known ? static_cast<run::SynchronisationKind>(wait.kind)
                                                : run::SynchronisationKind::other);
    block.synchronisations.start.push_back(static_cast<Nanoseconds>(wait.start_ns));
    block.synchronisations.duration.push_back(
        static_cast<Nanoseconds>(wait.end_ns - wait.start_ns));
    block.synchronisations.stream.push_back(wait.stream);
  }
}

void add_operator_times(run::Block& block, const SpoolContents& spool, const OrderSteps& order) {
  for (const spool::OpTime& time : spool.operator_times) {
    const run::OperatorId op = order.find(time.step, time.index);
    if (!op.valid() || !is_window(time.begin_ns, time.end_ns)) continue;
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
    std::string_view signature = spooled.signature;
    const bool cold = signature.starts_with(kCold);
    if (cold) signature.remove_prefix(kCold.size());
    run::Replay replay{run::ReplayKind::op, {}, spooled.begin, spooled.end, spooled.count};
    if (spooled.signature == kStatic || spooled.signature == kIdle) {
      replay.kind =
          spooled.signature == kStatic ? run::ReplayKind::static_power : run::ReplayKind::idle;
    } else if (const auto found = signatures.find(signature); found != signatures.end()) {
      replay.signature = found->second;
      if (cold) replay.kind = run::ReplayKind::cold;
    } else {
      diagnose(run, Severity::warning, "record.unknown_replay",
               "replays of operators that the first block's values pass did not see");
      continue;
    }
    if (replay.end <= replay.begin) continue;
    block.replays.push_back(replay);
  }
}

}  // namespace

void add_process(run::Run& run, run::Block& block, const SpoolContents& spool,
                 const OrderSteps& order) {
  if (spool.impossible_calls > 0)
    diagnose(run, Severity::warning, "record.impossible_call",
             "times and names of operators whose index no step reaches are left out",
             spool.impossible_calls);
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
  add_operator_times(block, spool, order);
  add_synchronisations(block, spool);
  add_replays(run, block, spool);
}

}  // namespace joulediff::lab
