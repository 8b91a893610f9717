// The board's view of a block: kernels recognised, calls counted between two ticks of the counter,
// one execution's energy from replay, or from the dynamic power of the replayed ones and time.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "attribute/conditions.h"
#include "attribute/ledger.h"
#include "attribute/replay.h"
#include "meter/calibrate.h"

namespace joulediff::attribute {
namespace {

// Without a static or idle window: between nothing and the lowest power that the block ever saw.
meter::StaticPower static_bound(const run::Block& block, const meter::Meter& meter) {
  constexpr std::size_t kAtOnce = 4;
  const auto times = meter::ticks(meter, block, block.begin, block.end);
  std::optional<Watts> lowest;
  for (std::size_t i = 0; i + kAtOnce < times.size(); i += kAtOnce)
    if (const auto part = meter::read(meter, block, times[i], times[i + kAtOnce])) {
      const Watts at_most = part->energy.high / part->seconds();
      lowest = std::min(lowest.value_or(at_most), at_most);
    }
  const Watts half = lowest.value_or(Watts(0)) / 2;
  return {half, half, "below the lowest power seen"};
}

// What the profile of the board says that was kept when the run was recorded.
std::optional<meter::StaticPower> calibrated(const run::Run& run, const run::Block& block,
                                             const meter::Meter& meter) {
  const auto series = std::ranges::find(block.series, meter.source, &run::Series::source);
  if (series == block.series.end()) return std::nullopt;
  const auto profile = meter::profile_of(run, series->channel);
  return profile ? meter::static_power(*profile) : std::nullopt;
}

// Dynamic watts of replayed operators while their kernels run, weighted by their time in the trace.
struct TypicalPower {
  double watts = 0;
  double spread = 0;        // of one operator's, 95 %
  double clock = 0;         // watts: what the replays' clock leaves open
  double static_ratio = 0;  // replay seconds for each kernel second
  std::size_t operators = 0;
};

TypicalPower typical_power(const std::vector<UnitCost>& units, const std::vector<Usage>& usage) {
  TypicalPower result;
  double weight = 0, sum = 0, squares = 0, static_seconds = 0, clock = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!units[i].known || usage[i].share <= 0) continue;
    const double share = usage[i].share;
    const double watts = units[i].joules * usage[i].calls / share;
    weight += share;
    sum += watts * share;
    squares += watts * watts * share;
    static_seconds += units[i].static_seconds * usage[i].calls;
    clock += units[i].common * usage[i].calls;
    ++result.operators;
  }
  if (result.operators == 0) return result;
  result.watts = sum / weight;
  result.clock = clock / weight;
  result.static_ratio = static_seconds / weight;
  const double deviation = std::sqrt(std::max(0.0, squares / weight - result.watts * result.watts));
  // Of one or two operators nothing is known about the others but that they draw something.
  constexpr std::size_t kEnough = 3;
  result.spread = result.operators < kEnough ? result.watts : 2 * deviation;
  return result;
}

std::vector<UnitCost> units_of(const run::Run& run, const run::Block& block,
                               const Replayed& replays, const Recognition& recognition,
                               const std::vector<Usage>& usage, const meter::Reading& trace,
                               const meter::StaticPower& floor, Diagnostics& diagnostics) {
  std::vector<UnitCost> units(run.operators.size());
  const std::size_t estimated_group = run.signatures.size();
  double worst_clock = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const run::SignatureId signature = run.operators[i].signature;
    if (!recognition.launches[i] || usage[i].calls <= 0) continue;
    if (!signature.valid() || !replays.by_signature[signature.index()]) continue;
    const Execution& one = *replays.by_signature[signature.index()];
    UnitCost& unit = units[i];
    unit.known = true;
    unit.joules = (one.energy.joules - floor.watts * one.seconds).value;
    unit.half_width = one.energy.half_width().value;
    unit.static_seconds = one.seconds.value;
    unit.group = signature.index();
    unit.standing = one.energy.standing;
    // Work at another clock and voltage costs other joules, by about the same ratio.
    const double clock = clock_difference(block, trace, one.readings);
    unit.common = std::abs(unit.joules * clock);
    if (std::abs(clock) > std::abs(worst_clock)) worst_clock = clock;
  }
  if (worst_clock != 0)
    add(diagnostics, Severity::warning, "attribute.clock",
        fmt::format("the SM clock in replay is up to {:+.1f} % off that of the trace; intervals "
                    "are widened by it. Lock the clocks or lower the power to compare closely",
                    100 * worst_clock));

  const TypicalPower typical = typical_power(units, usage);
  std::vector<bool> timed(units.size());
  for (const run::OperatorId op : block.operator_times.op) timed[op.index()] = true;
  const bool ordered = std::ranges::find(recognition.launches, true) != recognition.launches.end();
  for (std::size_t i = 0; i < units.size(); ++i) {
    UnitCost& unit = units[i];
    if (unit.known) continue;
    unit.group = estimated_group;
    if (!recognition.launches[i]) {
      // A view, or a call that was watched and launched nothing, costs the board nothing.
      unit.known = run.operators[i].view || (ordered && timed[i]);
    } else if (usage[i].calls > 0 && typical.operators > 0) {
      const double seconds = usage[i].share / usage[i].calls;
      unit = {true,
              typical.watts * seconds,
              typical.spread * seconds,
              typical.clock * seconds,
              typical.static_ratio * seconds,
              estimated_group,
              Standing::estimated};
    }
  }
  return units;
}

void warn_of_limits(const run::Block& block, const meter::Reading& trace, const Replayed& replays,
                    Diagnostics& diagnostics) {
  std::vector<meter::Reading> windows;
  for (const auto& one : replays.by_signature)
    if (one) windows.insert(windows.end(), one->readings.begin(), one->readings.end());
  const auto in_trace = held_back(block, {trace}), in_replay = held_back(block, windows);
  constexpr double kMatters = 0.1;
  if (in_trace && in_replay && std::abs(*in_trace - *in_replay) > kMatters)
    add(diagnostics, Severity::warning, "attribute.throttle",
        fmt::format("a power or thermal limit held the device back for {:.0f} % of the trace and "
                    "{:.0f} % of the replay: the replayed joules are of another operating point",
                    100 * *in_trace, 100 * *in_replay));
}

void warn_of_sensors(const run::Block& block, const meter::Meter& meter,
                     const meter::Reading& trace, double step, Diagnostics& diagnostics) {
  constexpr double kAgree = 0.05;
  if (const auto off = meter::ring_disagreement(meter, block, trace);
      off && std::abs(*off) > kAgree)
    add(diagnostics, Severity::warning, "attribute.sources_disagree",
        fmt::format("the integral of the board's power samples is {:+.1f} % off its energy "
                    "counter over the trace: one of the two misreads this load",
                    100 * *off));
  if (const auto period = locked_period(step))
    add(diagnostics, Severity::warning, "attribute.phase_lock",
        fmt::format("a step takes {:.2f} ms, in lock with the sensor's {:.0f} ms: its energy may "
                    "be misread by up to 10 %; change the step's length (batch) by some percent",
                    1e3 * step, 1e3 * *period));
}

// By the host's marks of them; those that are cut count by their time.
double marked_steps(const run::Block& block, const meter::Reading& reading) {
  double steps = 0;
  for (const run::Step& one : block.steps) {
    if (one.pass != run::Pass::trace || one.end <= one.begin) continue;
    const Nanoseconds inside = std::min(one.end, reading.end) - std::max(one.begin, reading.begin);
    if (inside > 0) steps += to_seconds(inside) / to_seconds(one.end - one.begin);
  }
  return steps;
}

// Counted by the device's kernels, since the host may be many steps ahead. Where recognition lost
// its way (steps that it took for loops) the host knows at least how many there were in all.
double count_steps(const DeviceShare& share, const meter::Reading& reading) {
  constexpr double kAgree = 0.1;
  const std::vector<Mark>& marks = share.recognition.marks;
  const double done = steps_between(marks, reading.begin, reading.end);
  if (done <= 0) return marked_steps(share.block, reading);
  const auto marked = static_cast<double>(
      std::ranges::count(share.block.steps, run::Pass::trace, &run::Step::pass));
  const double all = marks.back().progress + marks.back().share - marks.front().progress;
  return marked == 0 || std::abs(all / marked - 1) <= kAgree ? done : done * marked / all;
}

}  // namespace

std::optional<BlockView> view_board(const run::Run& run, const DeviceShare& share,
                                    const meter::Meter& meter, Diagnostics& diagnostics) {
  const run::Block& block = share.block;
  const run::KernelSeries& trace = *share.trace;
  const Recognition& recognition = share.recognition;
  Nanoseconds trace_end = 0;
  for (std::size_t i = 0; i < trace.size(); ++i)
    trace_end = std::max(trace_end, trace.start[i] + trace.duration[i]);
  const auto reading = meter::read(meter, block, trace.start.front(), trace_end);
  if (!reading) {
    add(diagnostics, Severity::warning, "attribute.trace_too_short",
        fmt::format("the trace of a block lasts {:.2f} s, in which the {} ticks fewer than {} "
                    "times; the block is left out. Record more steps",
                    to_seconds(trace_end - trace.start.front()).value, meter.name,
                    meter::kMinimumTicks));
    return std::nullopt;
  }
  if (reading->broken)
    add(diagnostics, Severity::warning, "attribute.meter_broke",
        fmt::format("the {} failed within the trace of a block (a reset, a leap, or a time that it "
                    "was not read); only the longest part without a break is used",
                    meter.name));

  const double steps = count_steps(share, *reading);
  if (steps <= 0) {
    add(diagnostics, Severity::warning, "attribute.no_steps",
        "the trace of a block cannot be divided into steps; the block is left out");
    return std::nullopt;
  }

  BlockView view;
  Standing floor = meter.standing;
  view.recognised = recognition.share;
  view.reading = *reading;
  if (const auto power = meter::static_power(meter, block)) {
    view.static_power = *power;
  } else if (const auto kept = calibrated(run, block, meter)) {
    view.static_power = *kept;
    floor = Standing::estimated;
    add(diagnostics, Severity::note, "attribute.static_of_profile",
        fmt::format(
            "neither a static nor an idle window was recorded: static power is {:.0f} W, of "
            "the board's calibration",
            kept->watts.value));
  } else {
    view.static_power = static_bound(block, meter);
    floor = Standing::estimated;
    add(diagnostics, Severity::warning, "attribute.no_static",
        fmt::format("neither a static nor an idle window was recorded: static power is only known "
                    "to be below {:.0f} W, and the intervals say so",
                    2 * view.static_power.watts.value));
  }

  Timeline spent = timeline(run, trace, recognition, reading->begin, reading->end);
  const Replayed replays = replayed(run, block, meter);
  if (replays.refused > 0)
    add(diagnostics, Severity::note, "attribute.replay_too_short",
        fmt::format("{} operators were replayed too shortly for the meter; they are estimated by "
                    "time. Give the recording a larger --budget",
                    replays.refused));
  view.units = units_of(run, block, replays, recognition, spent.usage, *reading, view.static_power,
                        diagnostics);
  for (Usage& usage : spent.usage)
    usage = {usage.calls / steps, usage.seconds / steps, usage.share / steps,
             usage.overlapped / steps};
  view.step = {reading->energy / steps,  reading->seconds().value / steps,
               spent.busy / steps,       spent.waiting / steps,
               spent.launch_gap / steps, spent.idle / steps,
               spent.overlapped / steps, (spent.busy + spent.waiting) / steps,
               std::move(spent.usage),   floor};

  constexpr double kRecognised = 0.98;
  if (recognition.share < kRecognised)
    add(diagnostics, Severity::warning, "attribute.recognised",
        fmt::format("{:.1f} % of kernel time was recognised; the rest is unattributed, most of it "
                    "in {}: kernels of steps that differ from those of the order pass. Fix the "
                    "input shapes or give the order pass more steps",
                    100 * recognition.share, unrecognised(run, trace, recognition)));
  const bool told = std::ranges::any_of(run.diagnostics, [](const Diagnostic& diagnostic) {
    return diagnostic.rule == "record.dropped_kernels";
  });
  if (block.dropped_kernels > 0 && !told)
    add(diagnostics, Severity::warning, "record.dropped_kernels",
        fmt::format("the device's buffers lost {} kernel records", block.dropped_kernels));
  warn_of_limits(block, *reading, replays, diagnostics);
  warn_of_sensors(block, meter, *reading, view.step.step, diagnostics);
  return view;
}

}  // namespace joulediff::attribute
