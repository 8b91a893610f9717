#include "attribute/replay.h"

#include <algorithm>
#include <cmath>

#include "attribute/conditions.h"
#include "meter/spread.h"
#include "meter/window.h"

namespace joulediff::attribute {
namespace {

constexpr double kSameClock = 0.01;  // relative

struct Measured {
  const meter::Window* window;
  meter::Reading reading;
  double count;
  std::vector<Execution::Part> parts;
};

std::vector<Execution::Part> parts_of(const run::Block& block, const meter::Meter& meter,
                                      const meter::Window& window, const meter::Reading& reading) {
  std::vector<Execution::Part> parts;
  for (const meter::Reading& part : meter::parts(meter, block, reading)) {
    const double count = window.executions(part.begin, part.end);
    if (count > 0)
      parts.push_back({part.energy.joules / count, part.energy.half_width() / count,
                       part.seconds() / count, part});
  }
  return parts;
}

std::vector<Measured> measured(const run::Block& block, const meter::Meter& meter,
                               const std::vector<meter::Window>& windows) {
  std::vector<Measured> all;
  for (const meter::Window& window : windows) {
    const auto reading = meter::read(meter, block, window.begin + meter::settle(meter), window.end);
    if (!reading) continue;
    const double count = window.executions(reading->begin, reading->end);
    if (count > 0)
      all.push_back({&window, *reading, count, parts_of(block, meter, window, *reading)});
  }
  return all;
}

// Those whose clock is about as near to the program's as that of the nearest.
std::vector<Measured> at_clock(const run::Block& block, std::vector<Measured> all, double clock) {
  std::vector<double> off;
  for (const Measured& one : all) {
    const auto own = mean_over(block, run::Source::nvml_sm_clock, {one.reading});
    if (!own) return all;
    off.push_back(std::abs(*own / clock - 1));
  }
  const double nearest = *std::ranges::min_element(off);
  std::vector<Measured> near;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (off[i] <= nearest + kSameClock) near.push_back(all[i]);
  return near;
}

// Seconds of executions between two instants; the rest of the time is pauses.
double busy(const meter::Window& window, Nanoseconds from, Nanoseconds to) {
  double sum = 0;
  for (const run::Replay& chunk : window.chunks)
    if (const Nanoseconds inside = std::min(to, chunk.end) - std::max(from, chunk.begin);
        inside > 0)
      sum += to_seconds(inside).value;
  return sum;
}

std::optional<Execution> execution(const run::Block& block, const meter::Meter& meter,
                                   const std::vector<meter::Window>& windows,
                                   std::optional<double> clock) {
  const std::vector<Measured> all = measured(block, meter, windows);
  if (all.empty()) return std::nullopt;
  double joules = 0, seconds = 0, whole = 0, executions = 0, squares = 0, part_variance = 0;
  std::vector<double> values;  // joules of one execution, by part
  std::vector<meter::Reading> readings;
  for (const Measured& one : clock ? at_clock(block, all, *clock) : all) {
    joules += one.reading.energy.joules.value;
    seconds += busy(*one.window, one.reading.begin, one.reading.end);
    whole += one.reading.seconds().value;
    executions += one.count;
    squares += std::pow(one.reading.energy.half_width().value, 2);
    readings.push_back(one.reading);
    for (const Execution::Part& part : one.parts) {
      values.push_back(part.joules.value);
      // A half width of 95 % is two standard deviations.
      part_variance += std::pow(part.half_width.value / 2, 2);
    }
  }
  if (!values.empty()) part_variance /= static_cast<double>(values.size());
  std::vector<Execution::Part> parts;
  for (const Measured& one : all) parts.insert(parts.end(), one.parts.begin(), one.parts.end());
  const double half_width =
      std::hypot(std::sqrt(squares) / executions, meter::spread_of_mean(values, part_variance));
  return Execution{Energy::around(Joules(joules / executions), Joules(half_width),
                                  std::max(Standing::replayed, meter.standing)),
                   Seconds(seconds / executions), std::move(readings), std::move(parts),
                   Seconds((whole - seconds) / executions)};
}

}  // namespace

Replayed replayed(const run::Run& run, const run::Block& block, const meter::Meter& meter,
                  std::optional<double> program_clock) {
  Replayed result;
  // One pass over the replays, so that many signatures stay linear.
  std::vector<std::vector<run::Replay>> warm(run.signatures.size()), cold(run.signatures.size());
  for (const run::Replay& replay : block.replays)
    if (run::is_of_operator(replay.kind) && replay.signature.index() < warm.size())
      (replay.kind == run::ReplayKind::op ? warm : cold)[replay.signature.index()].push_back(
          replay);
  const auto one = [&](std::vector<run::Replay>& chunks) {
    return execution(block, meter, meter::contiguous(std::move(chunks)), program_clock);
  };
  for (std::size_t i = 0; i < warm.size(); ++i) {
    const bool none = warm[i].empty();
    result.by_signature.push_back(one(warm[i]));
    result.cold.push_back(one(cold[i]));
    if (!none && !result.by_signature.back()) ++result.refused;
  }
  return result;
}

}  // namespace joulediff::attribute
