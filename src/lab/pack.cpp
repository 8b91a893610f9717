// Packing a launch: one process says what the program is, and each gives a block. What a process
// calls by name becomes the ids of the first.
#include "lab/pack.h"

#include <algorithm>
#include <joulediff/record.h>
#include <utility>

#include "lab/diagnostics.h"
#include "lab/found_steps.h"
#include "lab/imperfections.h"
#include "lab/order_steps.h"
#include "lab/pack_process.h"
#include "lab/pack_program.h"
#include "lab/workers.h"

namespace joulediff::lab {
namespace {

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

// The one that says what the program is: the first of those that got furthest.
const Worker& leader_of(const std::vector<Worker>& workers) {
  return *std::ranges::min_element(workers, {}, [](const Worker& worker) {
    return std::pair(worker.spool->operators.empty(), !was_traced(*worker.spool));
  });
}

}  // namespace

Status add_launch(run::Run& run, Recorded recorded) {
  find_missing_steps(recorded.spools);
  const std::vector<Worker> all = workers(recorded.spools);
  if (all.empty()) return fail(nothing_recorded(recorded));
  const Worker& leading = leader_of(all);
  const SpoolContents& leader = *leading.spool;
  if (run.blocks.empty() && leader.operators.empty())
    return fail(ExitCode::bad_input,
                recorded.launched.exit_status != 0
                    ? "the program ended with status " +
                          std::to_string(recorded.launched.exit_status) +
                          " before its operators were recorded"
                    : "no operators were recorded: the step after the first must run them through "
                      "jd_run or a framework that is watched, and --passes begin with values");
  if (run.blocks.empty()) {
    take_program(run, leader);
    if (all.size() > 1) run.manifest.facts[kValuesOfFact] = std::to_string(leading.rank);
  }
  tell_imperfections(run, recorded);

  run::Block launch;
  launch.order = recorded.order;
  launch.begin = recorded.launched.begin;
  launch.end = recorded.launched.end;
  // How a program ends that we ended says nothing of it.
  launch.exit_status = recorded.launched.stopped ? 0 : recorded.launched.exit_status;
  const std::size_t first = run.blocks.size();
  std::uint64_t others = 0;
  for (const Worker& worker : all) {
    const SpoolContents& process = *worker.spool;
    const OrderSteps order(run, process);
    // Another rank makes the operators of the first; what does not is another program.
    const bool same_program = worker.numbered || 2 * order.strangers() < order.operators();
    if (&process != &leader && (!same_program || (was_traced(leader) && !was_traced(process)))) {
      ++others;
      continue;
    }
    order.add_strangers(run);
    run::Block block = launch;
    block.rank = worker.rank;
    block.pid = process.pid;
    add_process(run, block, process, order);
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
