// The check reads the counter's own numbers at the two ticks that bound the trace, multiplies by
// the source's unit and compares the power with the ledger's: it goes around the meter's model,
// which only tells it the two ticks.
#include "cli/recompute.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/format.h"
#include "meter/meter.h"
#include "meter/window.h"

namespace joulediff::cli {
namespace {

double joules_per_unit(run::Source source) {
  if (source == run::Source::host_cpu) return 1e-9 * meter::kBusyCore.middle.value;
  return source == run::Source::rapl_package ? 1e-6 : 1e-3;
}

// What the raw series says between two of its instants.
std::optional<double> raw_joules(const run::Block& block, run::Source source, Nanoseconds begin,
                                 Nanoseconds end) {
  const auto series = std::ranges::find(block.series, source, &run::Series::source);
  if (series == block.series.end()) return std::nullopt;
  const auto at = [&](Nanoseconds time) -> std::optional<std::int64_t> {
    const auto found = std::ranges::lower_bound(series->time, time);
    if (found == series->time.end() || *found != time) return std::nullopt;
    return series->value[static_cast<std::size_t>(found - series->time.begin())];
  };
  const auto first = at(begin);
  const auto last = at(end);
  if (!first || !last) return std::nullopt;
  return joules_per_unit(source) * static_cast<double>(*last - *first);
}

std::string window_line(const std::string& what, const meter::Meter& meter, const run::Block& block,
                        Nanoseconds begin, Nanoseconds end) {
  const auto reading = meter::read(meter, block, begin, end);
  if (!reading) return fmt::format("  {}: too short for the meter\n", what);
  const std::size_t ticks = meter::ticks(meter, block, begin, end).size();
  return fmt::format("  {:<48} {:>3} readings, {}, {}\n", what, ticks, format(reading->energy),
                     format(reading->power()));
}

// From the first mark of a step of the trace to the last.
std::optional<meter::Reading> marked_trace(const run::Block& block, const meter::Meter& meter) {
  Nanoseconds begin = 0, end = 0;
  for (const run::Step& step : block.steps) {
    if (step.pass != run::Pass::trace) continue;
    begin = begin == 0 ? step.begin : std::min(begin, step.begin);
    end = std::max(end, step.end);
  }
  return meter::read(meter, block, begin, end);
}

// One channel's series of a launch, alone.
run::Block only(const run::Run& run, std::uint32_t order, run::Source source,
                const attribute::Window& window) {
  run::Block result;
  for (const run::Block& block : run.blocks)
    if (block.order == order && block.host == window.host)
      for (const run::Series& series : block.series)
        if (series.source == source && series.channel == window.channel)
          result.series.push_back(series);
  return result;
}

// The energy of the trace from the raw samples of each channel, against what the ledger was made
// of.
Result<std::string> recompute_ledger(const run::Run& run, std::uint32_t order,
                                     const attribute::Ledger& ledger,
                                     const std::vector<attribute::Window>& windows) {
  constexpr double kRounding = 1e-6;
  const meter::Meter& meter = ledger.meter;
  const double ledger_watts = (ledger.total.joules / ledger.step_time).value;
  std::string out = fmt::format("block {}: {}\n", order, meter.name);
  for (const attribute::Window& window : windows) {
    const meter::Reading& reading = window.reading;
    const run::Block sensor = only(run, order, meter.source, window);
    out += window_line(windows.size() == 1 ? "trace" : "trace, " + printable(window.channel), meter,
                       sensor, reading.begin, reading.end);
    const auto raw = raw_joules(sensor, meter.source, reading.begin, reading.end);
    if (!raw)
      return fail(ExitCode::bad_input, out + "the ledger's window is not in the raw samples");
    const double raw_watts = *raw / reading.seconds().value;
    // Of several devices the ledger has the sum.
    const double watts = windows.size() == 1 ? ledger_watts : reading.power().value;
    if (!(std::abs(raw_watts - watts) <= kRounding * std::abs(raw_watts)))
      return fail(ExitCode::bad_input,
                  fmt::format("block {}: the raw samples give {}, the ledger {}", order,
                              format(Watts(raw_watts)), format(Watts(watts))));
  }
  return out + fmt::format("  ledger: {} a step of {}, {}\n", format(ledger.total),
                           format(ledger.step_time), format(Watts(ledger_watts)));
}

std::string recompute_replays(const run::Run& run, const run::Block& block,
                              const meter::Meter& meter) {
  std::string out;
  for (const auto kind : {run::ReplayKind::static_power, run::ReplayKind::idle})
    for (const meter::Window& window : meter::floor_windows(block, kind))
      out += window_line(kind == run::ReplayKind::idle ? "idle" : "static", meter, block,
                         window.begin, window.end);
  for (const auto kind : {run::ReplayKind::op, run::ReplayKind::cold}) {
    std::vector<std::vector<run::Replay>> chunks(run.signatures.size());
    for (const run::Replay& replay : block.replays)
      if (replay.kind == kind) chunks[replay.signature.index()].push_back(replay);
    for (std::size_t i = 0; i < chunks.size(); ++i)
      for (const meter::Window& window : meter::contiguous(std::move(chunks[i]))) {
        std::uint64_t count = 0;
        for (const run::Replay& chunk : window.chunks) count += chunk.count;
        out += window_line(
            fmt::format("{} of {} x {}", kind == run::ReplayKind::op ? "replay" : "cold replay",
                        format_count(count), truncated(printable(run.signatures[i].text), 40)),
            meter, block, window.begin, window.end);
      }
  }
  return out;
}

bool same(const Energy& x, const Energy& y) {
  return x.joules == y.joules && x.low == y.low && x.high == y.high && x.standing == y.standing;
}

}  // namespace

Result<std::string> recompute(const run::Run& run, const attribute::Attribution& cost) {
  std::string out;
  for (const attribute::BlockCosts& costs : cost.blocks) {
    const auto block = std::ranges::find(run.blocks, costs.order, &run::Block::order);
    if (block == run.blocks.end() || !costs.ledger) continue;
    const auto hosts =
        std::ranges::count_if(run.blocks,
                              [&](const run::Block& other) {
                                return other.order == block->order && other.host != block->host;
                              }) +
        1;
    JD_ASSIGN(const std::string lines,
              recompute_ledger(run, costs.order, *costs.ledger, costs.windows));
    out += lines + recompute_replays(run, *block, cost.meter);
    for (const attribute::Ledger& beside : costs.beside) {
      // Of several hosts the ledger is a sum.
      const auto series =
          std::ranges::find(block->series, beside.meter.source, &run::Series::source);
      const auto reading = marked_trace(*block, beside.meter);
      if (hosts > 1 || series == block->series.end() || !reading) continue;
      JD_ASSIGN(
          const std::string more,
          recompute_ledger(run, costs.order, beside, {{block->host, series->channel, *reading}}));
      out += more;
    }
  }
  JD_ASSIGN(const attribute::Attribution again, attribute::attribute(run));
  std::size_t equal = same(again.ledger.total, cost.ledger.total) ? 1 : 0;
  for (std::size_t i = 0; i < std::min(again.beside.size(), cost.beside.size()); ++i)
    equal += same(again.beside[i].total, cost.beside[i].total) ? 1 : 0;
  for (std::size_t i = 0; i < cost.operators.size(); ++i)
    equal += same(again.operators[i].total, cost.operators[i].total) ? 1 : 0;
  if (equal != cost.operators.size() + 1 + cost.beside.size())
    return fail(ExitCode::bad_input, "a second pass over the raw samples gives other energies");
  out += fmt::format("second pass: {} energies, all equal\n", equal);
  const auto noted = run.manifest.facts.find("energy.total");
  if (noted == run.manifest.facts.end()) return out;
  const double stored = std::strtod(noted->second.c_str(), nullptr);
  constexpr double kDigits = 1e-3;
  if (!(std::abs(stored - cost.ledger.total.joules.value) <= kDigits * std::abs(stored)))
    return fail(ExitCode::bad_input,
                fmt::format("the recorder noted {} a step, the raw samples give {}",
                            format(Joules(stored)), format(cost.ledger.total.joules)));
  return out + fmt::format("recorder: {} a step, equal\n", format(Joules(stored)));
}

}  // namespace joulediff::cli
