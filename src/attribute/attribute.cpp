#include "attribute/attribute.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "attribute/conditions.h"
#include "attribute/ledger.h"
#include "meter/spread.h"

namespace joulediff::attribute {
namespace {

OperatorCost mean_cost(const std::vector<BlockCosts>& blocks, std::size_t index) {
  std::vector<Energy> dynamic, total;
  std::vector<double> seconds;
  for (const BlockCosts& block : blocks) {
    const OperatorCost& cost = block.operators[index];
    seconds.push_back(cost.seconds.value);
    if (!cost.known) continue;
    dynamic.push_back(cost.dynamic);
    total.push_back(cost.total);
  }
  OperatorCost result;
  result.seconds = Seconds(meter::mean(seconds));
  result.known = !dynamic.empty();
  if (result.known) {
    result.dynamic = meter::mean(dynamic);
    result.total = meter::mean(total);
  }
  return result;
}

// Line by line, so that the means sum to the mean total.
Ledger mean_ledger(const std::vector<BlockCosts>& blocks) {
  Ledger result = *blocks.front().ledger;
  std::vector<double> step, busy;
  std::vector<Energy> total;
  for (const BlockCosts& block : blocks) {
    step.push_back(block.ledger->step_time.value);
    busy.push_back(block.ledger->busy_time.value);
    total.push_back(block.ledger->total);
  }
  result.step_time = Seconds(meter::mean(step));
  result.busy_time = Seconds(meter::mean(busy));
  result.total = meter::mean(total);
  for (std::size_t line = 0; line < kLines; ++line) {
    std::vector<Energy> values;
    for (const BlockCosts& block : blocks) values.push_back(block.ledger->lines[line]);
    result.lines[line] = meter::mean(values);
  }
  return result;
}

void warn_of_remains(const Attribution& result, const run::Run& run, Diagnostics& diagnostics) {
  constexpr double kSmall = 0.1;
  const Ledger& ledger = result.ledger;
  const double rest = ledger.lines[static_cast<std::size_t>(Line::unattributed)].joules.value;
  const double share = ledger.total.joules.value > 0 ? rest / ledger.total.joules.value : 0;
  if (std::abs(share) > kSmall)
    add(diagnostics, Severity::warning, "attribute.unattributed",
        fmt::format("{:+.1f} % of the measured energy is unattributed", 100 * share));
  const auto unknown = std::ranges::count(result.operators, false, &OperatorCost::known);
  if (unknown > 0)
    add(diagnostics, Severity::note, "attribute.unknown_operators",
        fmt::format("the energy of {} of {} operators is not known", unknown,
                    run.operators.size()));
}

}  // namespace

Result<Attribution> attribute(const run::Run& run) {
  Attribution result;
  JD_ASSIGN(result.meter, meter::choose_meter(run));
  if (!(run.manifest.work.per_step > 0))
    return fail(ExitCode::bad_input, "the run's work per step is not a positive number");
  const bool board = result.meter.boundary == Boundary::board;

  double recognised = 0;
  for (const run::Block& block : run.blocks) {
    if (!board && block.trace_kernels.size() > 0)
      add(result.diagnostics, Severity::warning, "attribute.no_board_meter",
          "the device has no energy counter that moves: its energy is unknown, and only the host's "
          "is attributed");
    const auto boards = std::ranges::count(block.series, result.meter.source, &run::Series::source);
    if (boards > 1)
      add(result.diagnostics, Severity::warning, "attribute.several_boards",
          fmt::format("a block has {} series of the {}; only the first is read", boards,
                      result.meter.name));
    auto view = board ? view_board(run, block, result.meter, result.diagnostics)
                      : view_host(run, block, result.meter, result.diagnostics);
    if (!view) continue;
    result.blocks.push_back(costs(view->step, view->units, view->static_power, result.meter));
    result.blocks.back().order = block.order;
    recognised += view->recognised;
  }
  if (result.blocks.empty()) {
    std::string why = "the run has no blocks";
    for (const Diagnostic& diagnostic : result.diagnostics)
      if (diagnostic.severity != Severity::note) why = diagnostic.message;
    return fail(ExitCode::bad_input, "no energy can be attributed: " + why);
  }
  result.recognised = recognised / static_cast<double>(result.blocks.size());
  for (std::size_t i = 0; i < run.operators.size(); ++i)
    result.operators.push_back(mean_cost(result.blocks, i));
  result.ledger = mean_ledger(result.blocks);
  result.per_work_unit = result.ledger.total / run.manifest.work.per_step;
  warn_of_remains(result, run, result.diagnostics);
  return result;
}

}  // namespace joulediff::attribute
