// The ledger of a step. Each line is computed by itself: operators from what one execution cost in
// replay, the static lines from the static power and the times of the trace. None looks at the
// total; what the total has beyond them is the last line, signed.
// A line that the view does not tell apart is none; where its joules went, the last line has them.
// The lines' errors are not independent: an error of the static power lowers every operator's
// dynamic energy and raises every static line, and the same signature is wrong in all its calls.
// Each error is therefore carried by its origin and added up by origin before squares are taken.
#include "attribute/ledger.h"

#include <cmath>
#include <map>

namespace joulediff::attribute {
namespace {

// Two kernels side by side share caches, memory and a power limit, so that together they draw up to
// about a tenth more or less than in turn; that share of what overlaps is not known.
constexpr double kOverlapUnknown = 0.1;

Energy with(double joules, double half_width, Standing standing) {
  return Energy::around(Joules(joules), Joules(half_width), standing);
}

}  // namespace

std::string_view name(Line line) {
  switch (line) {
    case Line::operators: return "operators";
    case Line::static_busy: return "static";
    case Line::launch_gap: return "launch_gap";
    case Line::waiting: return "waiting";
    case Line::idle: return "idle";
    case Line::overlap: return "overlap";
    case Line::unattributed: return "unattributed";
  }
  return "?";
}

BlockCosts costs(const StepView& view, const std::vector<UnitCost>& units,
                 const meter::StaticPower& static_power, const meter::Meter& meter) {
  BlockCosts result;
  const double watts = static_power.watts.value, watts_error = static_power.half_width.value;

  double joules = 0, common = 0, static_seconds = 0, overlap = 0, overlapped = 0;
  std::size_t known = 0;
  bool costly = false;
  Standing standing = Standing::measured;
  std::map<std::size_t, double> groups;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const UnitCost& unit = units[i];
    const Usage& usage = view.usage[i];
    OperatorCost cost;
    cost.seconds = Seconds(usage.seconds);
    cost.known = unit.known;
    if (unit.known) {
      const double n = usage.calls;
      const double own = n * std::hypot(unit.half_width, unit.common);
      const double of_static = n * unit.static_seconds;
      cost.dynamic = with(n * unit.joules, std::hypot(own, watts_error * of_static), unit.standing);
      cost.total = with(n * unit.joules + watts * usage.share,
                        std::hypot(own, watts_error * (usage.share - of_static)), unit.standing);
      ++known;
      costly = costly || unit.joules != 0;
      joules += n * unit.joules;
      groups[unit.group] += n * unit.half_width;
      common += n * unit.common;
      static_seconds += of_static;
      // A known zero (a view) weakens nothing.
      if (unit.joules != 0) standing = std::max(standing, unit.standing);
      if (usage.overlapped > 0 && usage.seconds > 0) {
        overlapped += usage.overlapped;
        overlap += kOverlapUnknown * std::abs(n * unit.joules) * usage.overlapped / usage.seconds;
      }
    }
    result.operators.push_back(cost);
  }
  double independent = common * common;
  for (const auto& [group, half_width] : groups) independent += half_width * half_width;

  Ledger ledger;
  ledger.boundary = meter.boundary;
  ledger.meter = meter;
  ledger.total = view.total;
  ledger.step_time = Seconds(view.step);
  if (view.busy_time) ledger.busy_time = Seconds(*view.busy_time);
  const auto line = [&](Line which) -> std::optional<Energy>& {
    return ledger.lines[static_cast<std::size_t>(which)];
  };
  double floor_seconds = 0;
  const auto floor = [&](const std::optional<double>& seconds) -> std::optional<Energy> {
    if (!seconds) return std::nullopt;
    floor_seconds += *seconds;
    return with(watts * *seconds, watts_error * *seconds, view.floor);
  };
  // Views alone say nothing of the operators that work; 0 is only what every operator agrees on.
  if (costly || (known > 0 && known == units.size()))
    line(Line::operators) =
        with(joules, std::hypot(std::sqrt(independent), watts_error * static_seconds), standing);
  line(Line::static_busy) = floor(view.busy);
  line(Line::launch_gap) = floor(view.launch_gap);
  line(Line::waiting) = floor(view.waiting);
  line(Line::idle) = floor(view.idle);
  if (overlapped > 0)
    line(Line::overlap) = with(0, overlap, Standing::estimated);
  else if (view.overlapped && *view.overlapped == 0)
    line(Line::overlap) = Energy::exact(Joules(0), Standing::measured);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < kLines; ++i) {
    if (!ledger.lines[i]) continue;
    sum += ledger.lines[i]->joules.value;
    standing = std::max(standing, ledger.lines[i]->standing);
  }
  const double total_error = view.total.half_width().value;
  const double of_static = watts_error * (floor_seconds - static_seconds);
  line(Line::unattributed) = with(view.total.joules.value - sum,
                                  std::sqrt(total_error * total_error + independent +
                                            overlap * overlap + of_static * of_static),
                                  std::max(standing, view.total.standing));
  result.ledger = std::move(ledger);
  return result;
}

void add(BlockCosts& sum, const BlockCosts& other) {
  for (std::size_t i = 0; i < sum.operators.size(); ++i) {
    OperatorCost& a = sum.operators[i];
    const OperatorCost& b = other.operators[i];
    const bool ran_here = a.known || a.seconds.value > 0,
               ran_there = b.known || b.seconds.value > 0;
    if (a.known && b.known) {
      a.dynamic = a.dynamic + b.dynamic;
      a.total = a.total + b.total;
    } else if (b.known && !ran_here) {
      a.dynamic = b.dynamic;
      a.total = b.total;
    }
    a.known = (a.known || !ran_here) && (b.known || !ran_there) && (a.known || b.known);
    a.seconds += b.seconds;
  }
  sum.windows.insert(sum.windows.end(), other.windows.begin(), other.windows.end());
  if (!sum.ledger || !other.ledger) return;
  Ledger& ledger = *sum.ledger;
  ledger.total = ledger.total + other.ledger->total;
  if (ledger.busy_time && other.ledger->busy_time)
    *ledger.busy_time += *other.ledger->busy_time;
  else
    ledger.busy_time.reset();
  Energy rest = *ledger.line(Line::unattributed) + *other.ledger->line(Line::unattributed);
  for (std::size_t line = 0; line + 1 < kLines; ++line) {
    auto& a = ledger.lines[line];
    const auto& b = other.ledger->lines[line];
    if (a && b) {
      a = *a + *b;
      continue;
    }
    for (const auto& known : {a, b})
      if (known) rest = rest + *known;
    a.reset();
  }
  ledger.lines.back() = rest;
}

}  // namespace joulediff::attribute
