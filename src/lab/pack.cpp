// Packing a launch: one process says what the program is, and each gives a block. What a process
// calls by name becomes the ids of the first.
#include "lab/pack.h"

#include <algorithm>
#include <joulediff/record.h>
#include <tuple>

#include "lab/diagnostics.h"
#include "lab/found_steps.h"
#include "lab/imperfections.h"
#include "lab/order_steps.h"
#include "lab/pack_process.h"
#include "lab/pack_program.h"

namespace joulediff::lab {
namespace {

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

}  // namespace

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
                    : "no operators were recorded: the step after the first must run them through "
                      "jd_run or a framework that is watched, and --passes begin with values");
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
