// The board's view of a block: kernels recognised, calls counted between two ticks of the counter,
// one execution's energy from replay, or estimated.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "attribute/caches.h"
#include "attribute/clock_scaling.h"
#include "attribute/conditions.h"
#include "attribute/estimate.h"
#include "attribute/floor.h"
#include "attribute/ledger.h"
#include "attribute/replay.h"
#include "attribute/slowdown.h"
#include "meter/calibrate.h"
#include "meter/lag.h"
#include "meter/window.h"

namespace joulediff::attribute {
namespace {

constexpr auto kTemperature = run::Source::nvml_temperature;
// By how much an execution may cost more or less on other operands (95 %); all zeros cost a quarter
// less than random ones, but neighbouring layers do not differ like that.
constexpr double kOperands = 0.02;

double hypot(std::initializer_list<double> errors) {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return std::sqrt(squares);
}

// Static power with the state of the board while it was measured.
Floor floor_of(const run::Block& block, const meter::Meter& meter,
               const meter::StaticPower& measured) {
  std::vector<meter::Reading> readings;
  for (const auto kind : {run::ReplayKind::static_power, run::ReplayKind::idle}) {
    for (const meter::Window& window : meter::floor_windows(block, kind))
      if (const auto reading = meter::read(meter, block, window.begin, window.end))
        readings.push_back(*reading);
    if (!readings.empty()) break;
  }
  return {measured, mean_over(block, kTemperature, readings),
          mean_over(block, run::Source::nvml_sm_clock, readings)};
}

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

// Joules of an execution above static power; a pause between bursts draws static power, too.
double above(const Execution& one, const Floor::Watts& still) {
  return one.energy.joules.value - still.value * one.whole().value;
}
// Without kernels a board with a context drew from 8 % less to as much as with a spinning one.
constexpr double kPause = 0.1;
double error_above(const Execution& one, const Floor::Watts& still) {
  return hypot({one.energy.half_width().value, still.half_width * one.whole().value,
                kPause * still.value * one.pause.value});
}

// What an execution costs more on operands that are in no cache.
Caches::Extra colder(const run::Block& block, const Execution& warm, const Execution& cold,
                     const Floor& floor, const ClockScaling& scaling) {
  const auto state = [&](const Execution& one, run::Source source) {
    return mean_over(block, source, one.readings);
  };
  const auto from = state(cold, run::Source::nvml_sm_clock),
             to = state(warm, run::Source::nvml_sm_clock);
  const Floor::Watts still = floor.at(state(warm, kTemperature), to),
                     then = floor.at(state(cold, kTemperature), from);
  const ClockScaling::Factor factor =
      from && to ? scaling.factor(*from, *to) : ClockScaling::Factor();
  const double joules = above(cold, then);
  return {std::max(0.0, factor.value * joules - above(warm, still)),
          hypot({factor.value * error_above(cold, then), factor.half_width * joules,
                 error_above(warm, still)})};
}

// Of each operator that was replayed at the clock of the trace.
std::vector<std::optional<Timing>> timings(const run::Run& run, const run::Block& block,
                                           const Replayed& replays, const Recognition& recognition,
                                           const std::vector<Usage>& usage,
                                           std::optional<double> trace_clock) {
  constexpr double kSameClock = 0.01;
  std::vector<double> kernels(run.operators.size()), calls = kernels;
  for (std::size_t i = 0; i < recognition.op.size(); ++i)
    if (recognition.op[i].valid()) {
      kernels[recognition.op[i].index()] += 1;
      calls[recognition.op[i].index()] += recognition.calls[i];
    }
  std::vector<std::optional<Timing>> result(run.operators.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const run::SignatureId signature = run.operators[i].signature;
    if (usage[i].calls <= 0 || calls[i] <= 0 || !signature.valid()) continue;
    const auto& one = replays.by_signature[signature.index()];
    if (!one) continue;
    const auto clock = mean_over(block, run::Source::nvml_sm_clock, one->readings);
    if (clock && trace_clock && std::abs(*clock / *trace_clock - 1) >= kSameClock) continue;
    result[i] =
        Timing{usage[i].seconds / usage[i].calls, one->seconds.value, kernels[i] / calls[i]};
  }
  return result;
}

std::vector<UnitCost> units_of(const run::Run& run, const run::Block& block,
                               const Replayed& replays, const Recognition& recognition,
                               const std::vector<Usage>& usage, const meter::Reading& trace,
                               const Floor& floor, Diagnostics& diagnostics) {
  std::vector<UnitCost> units(run.operators.size());
  const Caches caches(run);
  const ClockScaling scaling(block, replays, Watts(floor.at(std::nullopt).value));
  const auto trace_clock = mean_over(block, run::Source::nvml_sm_clock, {trace});
  // At another clock the time tells nothing of caches.
  const auto slower = slowdowns(timings(run, block, replays, recognition, usage, trace_clock));
  double worst_clock = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const run::SignatureId signature = run.operators[i].signature;
    if (!recognition.launches[i] || usage[i].calls <= 0) continue;
    if (!signature.valid() || !replays.by_signature[signature.index()]) continue;
    const Execution& one = *replays.by_signature[signature.index()];
    UnitCost& unit = units[i];
    unit.known = true;
    const auto clock = mean_over(block, run::Source::nvml_sm_clock, one.readings);
    const Floor::Watts still = floor.at(mean_over(block, kTemperature, one.readings), clock);
    unit.joules = above(one, still);
    unit.static_seconds = one.seconds.value;
    unit.group = signature.index();
    unit.standing = one.energy.standing;
    unit.half_width = hypot({error_above(one, still), kOperands * unit.joules});
    const Caches::Extra cold =
        replays.cold[signature.index()]
            ? caches.between(run::OperatorId(i),
                             colder(block, one, *replays.cold[signature.index()], floor, scaling))
            : caches.extra(run::OperatorId(i), unit.joules, slower[i]);
    unit.joules += cold.joules;
    unit.common = cold.half_width;  // caches are cold for all, or for none
    if (!clock || !trace_clock) continue;
    const ClockScaling::Factor factor = scaling.factor(*clock, *trace_clock);
    unit.common = hypot({unit.common, unit.joules * factor.half_width});
    unit.joules *= factor.value;
    const double off = *clock / *trace_clock - 1;
    if (std::abs(off) > std::abs(worst_clock)) worst_clock = off;
  }
  constexpr double kMatters = 0.02;
  if (std::abs(worst_clock) > kMatters)
    add(diagnostics, Severity::warning, "attribute.clock",
        fmt::format("the SM clock in replay is up to {:+.1f} % off that of the trace: joules are "
                    "brought to the trace's clock, and intervals are widened. Lock the clocks or "
                    "lower the power to compare closely",
                    100 * worst_clock));

  // A view, or a call that was watched and launched nothing, costs the board nothing.
  std::vector<bool> timed(units.size());
  for (const run::OperatorId op : block.operator_times.op) timed[op.index()] = true;
  const bool ordered = std::ranges::find(recognition.launches, true) != recognition.launches.end();
  for (std::size_t i = 0; i < units.size(); ++i)
    if (!recognition.launches[i]) units[i].known = run.operators[i].view || (ordered && timed[i]);
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

// What warms up, or meets a limit on the way, has no one cost of a step.
void warn_of_drift(const run::Block& block, const meter::Meter& meter, const meter::Reading& trace,
                   Diagnostics& diagnostics) {
  constexpr std::size_t kParts = 30;
  constexpr double kMatters = 0.03;
  const auto change = drift(meter::parts(meter, block, trace, kParts));
  if (!change || std::abs(*change) <= kMatters) return;
  add(diagnostics, Severity::warning, "attribute.unsettled",
      fmt::format("the device's power changed by {:+.1f} % from the begin to the end of the trace: "
                  "it had not settled. Let the program run longer before its trace (more steps in "
                  "front, --trace-seconds) or cool down between recordings",
                  100 * *change));
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
                                    const meter::Meter& board_meter, Diagnostics& diagnostics) {
  const run::Block& block = share.block;
  meter::Meter meter = board_meter;
  meter.lag = meter::lag(board_meter, block);
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
  std::optional<meter::StaticPower> measured = meter::static_power(meter, block);
  if (!measured) {
    floor = Standing::estimated;
    measured = calibrated(run, block, meter);
    if (measured)
      add(diagnostics, Severity::note, "attribute.static_of_profile",
          fmt::format("neither a static nor an idle window was recorded: static power is {:.0f} W, "
                      "of the board's calibration",
                      measured->watts.value));
  }
  if (!measured) {
    measured = static_bound(block, meter);
    add(diagnostics, Severity::warning, "attribute.no_static",
        fmt::format("neither a static nor an idle window was recorded: static power is only known "
                    "to be below {:.0f} W, and the intervals say so",
                    2 * measured->watts.value));
  }
  const Floor still = floor_of(block, meter, *measured);
  view.static_power = still.power_at(mean_over(block, kTemperature, {*reading}),
                                     mean_over(block, run::Source::nvml_sm_clock, {*reading}));

  Timeline spent = timeline(run, trace, recognition, reading->begin, reading->end);
  const Replayed replays =
      replayed(run, block, meter, mean_over(block, run::Source::nvml_sm_clock, {*reading}));
  if (replays.refused > 0)
    add(diagnostics, Severity::note, "attribute.replay_too_short",
        fmt::format("{} operators were replayed too shortly for the meter; they are estimated by "
                    "time. Give the recording a larger --budget",
                    replays.refused));
  view.units =
      units_of(run, block, replays, recognition, spent.usage, *reading, still, diagnostics);
  estimate({run, block, trace, recognition, meter, *reading, view.static_power, spent,
            reading->seconds().value / steps},
           view.units, diagnostics);
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
  if (meter.lag > 0)
    add(diagnostics, Severity::note, "attribute.lag",
        fmt::format("the {} follows the load with a time constant of {:.0f} ms: what it had not "
                    "counted yet is added",
                    meter.name, 1e3 * meter.lag));
  warn_of_limits(block, *reading, replays, diagnostics);
  warn_of_sensors(block, meter, *reading, view.step.step, diagnostics);
  warn_of_drift(block, meter, *reading, diagnostics);
  return view;
}

}  // namespace joulediff::attribute
