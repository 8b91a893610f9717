#include "attribute/attribute.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

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

// Line by line, so that the means sum to the mean total. A line that one block does not know is
// not known in the mean: what the others had there joins their last line.
Ledger mean_ledger(const std::vector<Ledger>& blocks) {
  Ledger result = blocks.front();
  std::vector<double> step, busy;
  std::vector<Energy> total, rest;
  for (const Ledger& block : blocks) {
    step.push_back(block.step_time.value);
    if (block.busy_time) busy.push_back(block.busy_time->value);
    total.push_back(block.total);
    rest.push_back(*block.line(Line::unattributed));
  }
  result.step_time = Seconds(meter::mean(step));
  result.busy_time.reset();
  if (busy.size() == blocks.size()) result.busy_time = Seconds(meter::mean(busy));
  result.total = non_negative(meter::mean(total));
  for (std::size_t line = 0; line + 1 < kLines; ++line) {
    std::vector<Energy> values;
    for (const Ledger& block : blocks)
      if (block.lines[line]) values.push_back(*block.lines[line]);
    result.lines[line].reset();
    if (values.size() == blocks.size()) {
      const Energy mean = meter::mean(values);
      const bool is_signed = static_cast<Line>(line) == Line::overlap;
      result.lines[line] = is_signed ? mean : non_negative(mean);
    } else {
      for (std::size_t i = 0; i < blocks.size(); ++i)
        if (blocks[i].lines[line]) rest[i] = rest[i] + *blocks[i].lines[line];
    }
  }
  result.lines.back() = meter::mean(rest);
  return result;
}

std::vector<Ledger> ledgers(const std::vector<BlockCosts>& blocks, Boundary boundary) {
  std::vector<Ledger> found;
  for (const BlockCosts& block : blocks) {
    if (block.ledger && block.ledger->boundary == boundary) found.push_back(*block.ledger);
    for (const Ledger& ledger : block.beside)
      if (ledger.boundary == boundary) found.push_back(ledger);
  }
  return found;
}

void warn_of_remains(const Attribution& result, const run::Run& run, Diagnostics& diagnostics) {
  constexpr double kSmall = 0.1;
  const Ledger& ledger = result.ledger;
  const double rest = ledger.line(Line::unattributed)->joules.value;
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
  const std::vector<meter::Meter> meters = meter::meters(run);
  if (!(run.manifest.work.per_step > 0))
    return fail(ExitCode::bad_input, "the run's work per step is not a positive number");
  const bool board = result.meter.boundary == Boundary::board;

  double recognised = 0;
  for (const run::Block& block : run.blocks) {
    if (!board && block.trace_kernels.size() > 0)
      add(result.diagnostics, Severity::warning, "attribute.no_board_meter",
          "the device has no energy counter that moves: its energy is unknown, and only the host's "
          "is attributed");
    std::set<std::string> channels;
    for (const run::Series& series : block.series)
      if (series.source == result.meter.source) channels.insert(series.channel);
    const bool said = !run.devices.empty() || channels.contains(run.manifest.device_uuid);
    if (board && !said && channels.size() > result.meter.channels.size())
      add(result.diagnostics, Severity::warning, "attribute.several_boards",
          fmt::format(
              "{} boards were metered, and the run does not say which it used; the first is "
              "read: show the program one board with CUDA_VISIBLE_DEVICES",
              channels.size()));
    auto view = board ? view_board(run, block, result.meter, result.diagnostics)
                      : view_host(run, block, result.meter, result.diagnostics);
    if (!view) continue;
    result.blocks.push_back(costs(view->step, view->units, view->static_power, result.meter));
    result.blocks.back().order = block.order;
    recognised += view->recognised;
    for (const meter::Meter& meter : meters) {
      if (meter.boundary == result.meter.boundary) continue;
      if (const auto beside =
              view_beside(block, meter, Seconds(view->step.step), result.diagnostics))
        result.blocks.back().beside.push_back(*costs(*beside, {}, {}, meter).ledger);
    }
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
  for (const meter::Meter& meter : meters) {
    const std::vector<Ledger> found = ledgers(result.blocks, meter.boundary);
    if (meter.boundary == result.meter.boundary)
      result.ledger = mean_ledger(found);
    else if (!found.empty())
      result.beside.push_back(mean_ledger(found));
  }
  result.per_work_unit = result.ledger.total / run.manifest.work.per_step;
  warn_of_remains(result, run, result.diagnostics);
  return result;
}

}  // namespace joulediff::attribute
