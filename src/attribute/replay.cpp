#include "attribute/replay.h"

#include <cmath>

#include "meter/spread.h"
#include "meter/window.h"

namespace joulediff::attribute {
namespace {

std::optional<Execution> execution(const run::Block& block, const meter::Meter& meter,
                                   const std::vector<meter::Window>& windows) {
  double joules = 0, seconds = 0, executions = 0, squares = 0;
  std::vector<double> values;  // joules of one execution, by part
  double part_variance = 0;
  std::vector<meter::Reading> readings;
  std::vector<Execution::Part> parts;
  for (const meter::Window& window : windows) {
    const auto reading = meter::read(meter, block, window.begin + meter::settle(meter), window.end);
    if (!reading) continue;
    const double count = window.executions(reading->begin, reading->end);
    if (count <= 0) continue;
    joules += reading->energy.joules.value;
    seconds += reading->seconds().value;
    executions += count;
    squares += std::pow(reading->energy.half_width().value, 2);
    readings.push_back(*reading);
    for (const meter::Reading& part : meter::parts(meter, block, *reading)) {
      const double in_part = window.executions(part.begin, part.end);
      if (in_part <= 0) continue;
      values.push_back(part.energy.joules.value / in_part);
      parts.push_back({part.energy.joules / in_part, part.energy.half_width() / in_part,
                       part.seconds() / in_part, part});
      // A half width of 95 % is two standard deviations.
      part_variance += std::pow(part.energy.half_width().value / in_part / 2, 2);
    }
  }
  if (executions == 0) return std::nullopt;
  if (!values.empty()) part_variance /= static_cast<double>(values.size());
  const double half_width =
      std::hypot(std::sqrt(squares) / executions, meter::spread_of_mean(values, part_variance));
  return Execution{Energy::around(Joules(joules / executions), Joules(half_width),
                                  std::max(Standing::replayed, meter.standing)),
                   Seconds(seconds / executions), std::move(readings), std::move(parts)};
}

}  // namespace

Replayed replayed(const run::Run& run, const run::Block& block, const meter::Meter& meter) {
  Replayed result;
  // One pass over the replays, so that many signatures stay linear.
  std::vector<std::vector<run::Replay>> chunks(run.signatures.size());
  for (const run::Replay& replay : block.replays)
    if (replay.kind == run::ReplayKind::op && replay.signature.index() < chunks.size())
      chunks[replay.signature.index()].push_back(replay);
  for (auto& own : chunks) {
    if (own.empty()) {
      result.by_signature.emplace_back();
      continue;
    }
    result.by_signature.push_back(execution(block, meter, meter::contiguous(std::move(own))));
    if (!result.by_signature.back()) ++result.refused;
  }
  return result;
}

}  // namespace joulediff::attribute
