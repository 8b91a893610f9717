#include "attribute/attribute.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>

#include "attribute/beside.h"
#include "attribute/conditions.h"
#include "attribute/launch.h"
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

// Each process finds the delay anew: together they say how well it is known.
void join(meter::Alignment& all, const meter::Alignment& one) {
  for (const auto part :
       {&meter::Alignment::offset, &meter::Alignment::window, &meter::Alignment::delay}) {
    (all.*part).low = std::min((all.*part).low, (one.*part).low);
    (all.*part).high = std::max((all.*part).high, (one.*part).high);
  }
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
  if (result.meter.alignment)
    for (const Ledger& block : blocks) join(*result.meter.alignment, *block.meter.alignment);
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

// Those of one meter.
std::vector<Ledger> ledgers(const std::vector<BlockCosts>& blocks, const meter::Meter& meter) {
  std::vector<Ledger> found;
  for (const BlockCosts& block : blocks) {
    if (block.ledger && same_meter(block.ledger->meter, meter)) found.push_back(*block.ledger);
    for (const Ledger& ledger : block.beside)
      if (same_meter(ledger.meter, meter)) found.push_back(ledger);
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

struct LaunchCosts {
  BlockCosts costs;
  double recognised = 1;
};

BlockCosts costs_of(const BlockView& view, const meter::Meter& meter, const run::Block& block) {
  BlockCosts result = costs(view.step, view.units, view.static_power, meter);
  const auto series = std::ranges::find(block.series, meter.source, &run::Series::source);
  result.windows = {
      {block.host, series != block.series.end() ? series->channel : "", view.reading}};
  return result;
}

void take(std::optional<LaunchCosts>& sum, BlockCosts costs) {
  if (sum)
    add(sum->costs, costs);
  else
    sum = LaunchCosts{std::move(costs), 1};
}

// What ran on a device whose energy is not known.
void forget(BlockCosts& costs, const DeviceShare& share) {
  for (const run::OperatorId op : share.recognition.op)
    if (op.valid()) costs.operators[op.index()].known = false;
}

// Where a run does not say which of the metered boards it used.
void tell_of_choice(const run::Run& run, const Launch& launch, const meter::Meter& meter,
                    Diagnostics& diagnostics) {
  std::set<std::string> channels;
  for (const run::Block* block : launch.ranks)
    for (const run::Series& series : block->series)
      if (series.source == meter.source) channels.insert(series.channel);
  const bool said = !run.devices.empty() || channels.contains(run.manifest.device_uuid);
  if (!said && channels.size() > meter.channels.size())
    add(diagnostics, Severity::warning, "attribute.several_boards",
        fmt::format("{} boards were metered, and the run does not say which it used; the first is "
                    "read: show the program one board with CUDA_VISIBLE_DEVICES",
                    channels.size()));
}

// A launch is the sum of its devices.
std::optional<LaunchCosts> board_costs(const run::Run& run, const Launch& launch,
                                       const meter::Meter& meter, Diagnostics& diagnostics) {
  const std::vector<DeviceShare> shares = device_shares(run, launch, meter);
  if (shares.empty())
    add(diagnostics, Severity::warning, "attribute.no_trace",
        "a block has no kernels of the trace pass; it is left out");
  tell_of_choice(run, launch, meter, diagnostics);
  meter::Meter own = meter;  // a share has the series of its device alone
  own.channels.clear();
  std::optional<LaunchCosts> sum;
  double seconds = 0, recognised = 0;
  std::vector<const DeviceShare*> unknown;
  for (const DeviceShare& share : shares) {
    if (!share.metered) {
      add(diagnostics, Severity::warning, "attribute.unmetered_device",
          fmt::format("no series of the {} is of {}: what it used is unknown, and in no sum",
                      meter.name, share.name));
      unknown.push_back(&share);
      continue;
    }
    const auto view = view_board(run, share, own, diagnostics);
    if (!view) {
      unknown.push_back(&share);
      continue;
    }
    take(sum, costs_of(*view, meter, share.block));
    double busy = 0;
    for (const Nanoseconds duration : share.trace->duration) busy += to_seconds(duration).value;
    seconds += busy;
    recognised += busy * view->recognised;
  }
  if (!sum) return sum;
  for (const DeviceShare* share : unknown) forget(sum->costs, *share);
  sum->recognised = seconds > 0 ? recognised / seconds : 1;
  return sum;
}

std::optional<LaunchCosts> host_costs(const run::Run& run, const Launch& launch,
                                      const meter::Meter& meter, Diagnostics& diagnostics) {
  for (const run::Block* block : launch.ranks)
    if (block->trace_kernels.size() > 0)
      add(diagnostics, Severity::warning, "attribute.no_board_meter",
          "the device has no energy counter that moves: its energy is unknown, and only the host's "
          "is attributed");
  std::optional<LaunchCosts> sum;
  for (const HostShare& share : host_shares(launch)) {
    const auto view = view_host(run, share, meter, diagnostics);
    if (!view) return std::nullopt;
    take(sum, costs_of(*view, meter, share.block));
  }
  return sum;
}

}  // namespace

double work_of_step(const run::Run& run) {
  const double work = run.manifest.work.per_step;
  const auto global = run.manifest.facts.find("work_is_global");
  if (run.blocks.empty() || (global != run.manifest.facts.end() && global->second == "true"))
    return work;
  const std::uint32_t first = run.blocks.front().order;
  return work * static_cast<double>(std::ranges::count(run.blocks, first, &run::Block::order));
}

Result<Attribution> attribute(const run::Run& run) {
  Attribution result;
  JD_ASSIGN(result.meter, meter::choose_meter(run));
  std::vector<meter::Meter> beside = meter::meters_beside(run);
  for (const meter::Meter& meter : meter::meters(run))
    if (!same_meter(meter, result.meter)) beside.push_back(meter);
  std::ranges::stable_sort(beside, {}, &meter::Meter::boundary);
  if (!(run.manifest.work.per_step > 0))
    return fail(ExitCode::bad_input, "the run's work per step is not a positive number");
  const bool board = result.meter.boundary == Boundary::board;

  double recognised = 0;
  for (const Launch& launch : launches(run)) {
    auto sum = board ? board_costs(run, launch, result.meter, result.diagnostics)
                     : host_costs(run, launch, result.meter, result.diagnostics);
    if (!sum) continue;
    recognised += sum->recognised;
    BlockCosts& costs = result.blocks.emplace_back(std::move(sum->costs));
    costs.order = launch.order;
    for (const meter::Meter& meter : beside) add_beside(launch, meter, costs, result.diagnostics);
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
  result.ledger = mean_ledger(ledgers(result.blocks, result.meter));
  for (const meter::Meter& meter : beside)
    if (const auto found = ledgers(result.blocks, meter); !found.empty())
      result.beside.push_back(mean_ledger(found));
  tell_of_unstated(run, result.diagnostics);
  result.per_work_unit = result.ledger.total / work_of_step(run);
  warn_of_remains(result, run, result.diagnostics);
  return result;
}

}  // namespace joulediff::attribute
