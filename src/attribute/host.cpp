// The host's view of a block: the trace pass by the host's own marks of its steps, one execution's
// energy from replay, or from its time in the order pass and a watched power.
//
// What no meter of the host tells apart is none, not 0: what the program does between its operators
// (the interpreter, the data loader) is real work, and stays in `unattributed`, signed; a wait that
// spins draws as much as work does; the model is watts of a busy core, whose static share is inside
// them, and what the host draws when no core is busy is not in it at all.
//
// Where a device decides, the host has no line but the last. The order pass times operators on the
// host, but under the recorder's hooks and with whatever the launch waited for, and the replay
// spins at the device's pace: neither is what the operator costs the host in the trace.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "attribute/conditions.h"
#include "attribute/ledger.h"
#include "attribute/replay.h"
#include "meter/spread.h"

namespace joulediff::attribute {
namespace {

// Seconds of each operator in one step of the order pass, without those of calls inside it;
// negative where it was not seen.
std::vector<double> own_seconds(const run::Block& block, std::size_t operators) {
  const run::OperatorTimes& times = block.operator_times;
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return times.begin[a] != times.begin[b] ? times.begin[a] < times.begin[b]
                                            : times.end[a] > times.end[b];
  });
  std::vector<double> seconds(operators, 0);
  std::vector<std::vector<std::uint32_t>> steps(operators);
  std::vector<std::size_t> open;
  for (const std::size_t i : order) {
    while (!open.empty() && times.end[open.back()] <= times.begin[i]) open.pop_back();
    const double length = to_seconds(times.end[i] - times.begin[i]).value;
    if (!open.empty()) seconds[times.op[open.back()].index()] -= length;
    seconds[times.op[i].index()] += length;
    if (auto& seen = steps[times.op[i].index()]; seen.empty() || seen.back() != times.step[i])
      seen.push_back(times.step[i]);
    open.push_back(i);
  }
  for (std::size_t i = 0; i < operators; ++i)
    seconds[i] = steps[i].empty() ? -1 : seconds[i] / static_cast<double>(steps[i].size());
  return seconds;
}

// Of all ranks together.
std::vector<double> own_seconds(const std::vector<const run::Block*>& ranks,
                                std::size_t operators) {
  std::vector<double> sum(operators, -1);
  for (const run::Block* block : ranks) {
    const std::vector<double> own = own_seconds(*block, operators);
    for (std::size_t i = 0; i < operators; ++i)
      if (own[i] >= 0) sum[i] = std::max(sum[i], 0.0) + own[i];
  }
  return sum;
}

struct Power {
  double watts = 0;
  double half_width = 0;
  Standing standing = Standing::estimated;
};

// What the host draws while it works on operators, above its floor: in replay, else over the order
// pass as a whole. Never from the trace, whose total the ledger explains.
std::optional<Power> working_power(const run::Block& block, const meter::Meter& meter,
                                   const Replayed& replays, const meter::StaticPower& floor) {
  std::vector<double> watts;
  double joules = 0, seconds = 0;
  for (const auto& one : replays.by_signature) {
    if (!one || one->whole() <= Seconds(0)) continue;
    watts.push_back((one->energy.joules / one->whole() - floor.watts).value);
    joules += one->energy.joules.value;
    seconds += one->whole().value;
  }
  const Standing standing = std::max(Standing::estimated, meter.standing);
  constexpr std::size_t kEnough = 3;
  if (!watts.empty()) {
    const double mean = meter::mean(watts);
    double squares = 0;
    for (const double value : watts) squares += (value - mean) * (value - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(watts.size()));
    const double middle = joules / seconds - floor.watts.value;
    return Power{middle, watts.size() < kEnough ? std::abs(middle) : 2 * deviation, standing};
  }
  Nanoseconds begin = 0, end = 0;
  for (const run::Step& step : block.steps) {
    if (step.pass != run::Pass::order) continue;
    begin = begin == 0 ? step.begin : std::min(begin, step.begin);
    end = std::max(end, step.end);
  }
  const auto reading = meter::read(meter, block, begin, end);
  if (!reading) return std::nullopt;
  const double middle = (reading->power() - floor.watts).value;
  return Power{middle, std::abs(middle), standing};
}

struct Trace {
  double seconds = 0;  // from the first mark of a step to the last
  std::optional<meter::Reading> reading;
};

Trace trace_of(const run::Block& block, const meter::Meter& meter) {
  Nanoseconds begin = 0, end = 0;
  for (const run::Step& step : block.steps) {
    if (step.pass != run::Pass::trace) continue;
    begin = begin == 0 ? step.begin : std::min(begin, step.begin);
    end = std::max(end, step.end);
  }
  return {to_seconds(end - begin).value, meter::read(meter, block, begin, end)};
}

std::string too_short(const Trace& trace, const meter::Meter& meter) {
  return fmt::format("the trace of a block lasts {:.2f} s, too short for {} readings of the {}",
                     trace.seconds, meter::kMinimumTicks, meter.name);
}

}  // namespace

// The host runs ahead of the device, so its marks of a step are no measure of one: the step is the
// device's, and the host's power over the trace is charged for as long as that lasts.
std::optional<StepView> view_beside(const run::Block& block, const meter::Meter& meter,
                                    Seconds step, Diagnostics& diagnostics) {
  const Trace trace = trace_of(block, meter);
  if (!trace.reading) {
    add(diagnostics, Severity::note, "attribute.host_left_out",
        fmt::format("{}; the {}'s ledger goes without the block", too_short(trace, meter),
                    name(meter.boundary)));
    return std::nullopt;
  }
  StepView view;
  view.total = trace.reading->energy / (trace.reading->seconds() / step);
  view.step = step.value;
  return view;
}

std::optional<BlockView> view_host(const run::Run& run, const HostShare& share,
                                   const meter::Meter& meter, Diagnostics& diagnostics) {
  const run::Block& block = share.block;
  const Trace trace = trace_of(block, meter);
  const auto& reading = trace.reading;
  if (!reading) {
    add(diagnostics, Severity::warning, "attribute.trace_too_short",
        too_short(trace, meter) + "; the block is left out. Record more steps");
    return std::nullopt;
  }
  // The steps need not touch: what lies between two is no part of either.
  double steps = 0;
  for (const run::Step& step : block.steps) {
    if (step.pass != run::Pass::trace || step.end <= step.begin) continue;
    const Nanoseconds inside =
        std::min(step.end, reading->end) - std::max(step.begin, reading->begin);
    if (inside > 0) steps += to_seconds(inside) / to_seconds(step.end - step.begin);
  }
  if (steps <= 0) {
    add(diagnostics, Severity::warning, "attribute.no_steps",
        "the trace of a block cannot be divided into steps; the block is left out");
    return std::nullopt;
  }

  BlockView view;
  view.reading = *reading;
  view.step.total = reading->energy / steps;
  view.step.step = reading->seconds().value / steps;
  view.step.floor = meter.standing;
  if (const auto floor = meter::static_power(meter, block)) {
    view.static_power = *floor;
    view.step.busy = view.step.step;  // over the whole step: its pauses are not told apart
  } else {
    view.static_power = {Watts(0), Watts(0), "unknown"};
    if (meter.source != run::Source::host_cpu)
      add(diagnostics, Severity::warning, "attribute.no_static",
          "neither a static nor an idle window was recorded: operators carry the host's static "
          "power too");
  }
  const meter::StaticPower& floor = view.static_power;

  const Replayed replays = replayed(run, block, meter);
  const auto power = working_power(block, meter, replays, floor);
  const auto ranks = static_cast<double>(share.ranks.size());
  const std::vector<double> seconds = own_seconds(share.ranks, run.operators.size());
  view.units.resize(run.operators.size());
  std::vector<Usage> usage(run.operators.size());
  double busy = 0;
  for (std::size_t i = 0; i < view.units.size(); ++i) {
    const run::Operator& op = run.operators[i];
    UnitCost& unit = view.units[i];
    unit.group = run.signatures.size();
    usage[i].calls = ranks;
    if (op.view) {  // moves no data; what its dispatch costs is the interpreter's
      unit.known = true;
      if (seconds[i] > 0) usage[i].seconds = seconds[i];
    } else if (op.signature.valid() && replays.by_signature[op.signature.index()]) {
      const Execution& one = *replays.by_signature[op.signature.index()];
      unit = {true,
              (one.energy.joules - floor.watts * one.whole()).value,
              one.energy.half_width().value,
              0,
              one.whole().value,
              op.signature.index(),
              one.energy.standing};
      usage[i].seconds = seconds[i] >= 0 ? seconds[i] : ranks * one.whole().value;
    } else if (power && seconds[i] >= 0) {
      unit = {true,
              power->watts * seconds[i] / ranks,
              power->half_width * seconds[i] / ranks,
              0,
              seconds[i] / ranks,
              run.signatures.size(),
              power->standing};
      usage[i].seconds = seconds[i];
    }
    usage[i].share = usage[i].seconds;
    busy += usage[i].seconds;
  }
  view.step.busy_time = std::min(busy, ranks * view.step.step);
  view.step.usage = std::move(usage);
  return view;
}

}  // namespace joulediff::attribute
