// A counter that integrates x through a first-order response y of time constant t, y' = (x - y) /
// t, stands at time u after a step from y0 to x at  c + x u - (x - y0) t (1 - exp(-u / t)).  For
// each t of a grid that is linear in c and x; y0 follows from the window before and the pause
// between, in which the board draws its floor. The t that leaves the least is taken, if it leaves
// much less than none does.
#include "meter/lag.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "meter/stretch.h"
#include "meter/window.h"

namespace joulediff::meter {
namespace {

constexpr std::size_t kFewestTicks = 5;
constexpr double kLongest = 0.8, kRatio = 1.15;
// What is shorter the settling time takes care of: a fiftieth is left of the step.
constexpr double kShortest = 1e-9 * static_cast<double>(kSettle) / 4;

// A window in which the power is constant, as far as limits let it.
struct Plateau {
  Nanoseconds begin = 0, end = 0;
  Stretch ticks;
};

// The power limit brings transients of its own.
bool held_back(const run::Block& block, const Window& window) {
  constexpr std::int64_t kLimits = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
  const auto series =
      std::ranges::find(block.series, run::Source::nvml_throttle, &run::Series::source);
  if (series == block.series.end()) return false;
  const auto first = std::ranges::lower_bound(series->time, window.begin);
  for (auto i = static_cast<std::size_t>(first - series->time.begin());
       i < series->time.size() && series->time[i] <= window.end; ++i)
    if ((series->value[i] & kLimits) != 0) return true;
  return false;
}

std::vector<Plateau> plateaus(const Meter& meter, const run::Block& block) {
  std::map<run::SignatureId, std::vector<run::Replay>> chunks;
  for (const run::Replay& replay : block.replays)
    if (replay.kind == run::ReplayKind::op) chunks[replay.signature].push_back(replay);
  std::vector<Plateau> all;
  for (auto& [signature, own] : chunks)
    for (const Window& window : contiguous(std::move(own))) {
      Plateau one{window.begin, window.end, {}};
      const auto found = stretches(meter, block, window.begin, window.end);
      if (found.size() == 1 && found.front().size() >= kFewestTicks && !held_back(block, window))
        one.ticks = found.front();
      all.push_back(std::move(one));
    }
  std::ranges::sort(all, {}, &Plateau::begin);
  return all;
}

// What is left of the ticks, in units of their variances; sets the power `x`.
double left(const Plateau& one, double before, double t, double& x) {
  // c + x a = rest, a = u - g, rest = joules - y0 g, g = t (1 - exp(-u / t)).
  double n = 0, a1 = 0, a2 = 0, r1 = 0, ra = 0;
  const auto visit = [&](auto use) {
    for (const Tick& tick : one.ticks) {
      const double u = to_seconds(tick.time - one.begin).value;
      const double g = t > 0 ? t * (1 - std::exp(-u / t)) : 0;
      use(u - g, tick.joules - one.ticks.front().joules - before * g, tick.uncertainty);
    }
  };
  visit([&](double a, double rest, double) {
    n += 1;
    a1 += a;
    a2 += a * a;
    r1 += rest;
    ra += rest * a;
  });
  x = (n * ra - a1 * r1) / (n * a2 - a1 * a1);
  const double c = (r1 - x * a1) / n;
  double sum = 0;
  visit([&](double a, double rest, double uncertainty) {
    // A tick lies anywhere within its uncertainty.
    const double deviation = std::max(1e-3, std::abs(x) * uncertainty / std::sqrt(3.0));
    sum += std::pow((rest - c - x * a) / deviation, 2);
  });
  return sum;
}

double left(const std::vector<Plateau>& all, double floor, double t) {
  double sum = 0, power = floor;
  Nanoseconds since = 0;  // when the counter's power was `power`, on its way to the floor
  for (const Plateau& one : all) {
    const double pause = since == 0 ? kLongest * 10 : to_seconds(one.begin - since).value;
    const double before = t > 0 ? floor + (power - floor) * std::exp(-pause / t) : floor;
    if (one.ticks.empty()) {
      since = 0;  // what it came to is not known
      continue;
    }
    double x = 0;
    sum += left(one, before, t, x);
    power = t > 0 ? x + (before - x) * std::exp(-to_seconds(one.end - one.begin).value / t) : x;
    since = one.end;
  }
  return sum;
}

}  // namespace

double lag(const Meter& meter, const run::Block& block) {
  if (!run::is_energy_counter(meter.source)) return 0;
  const auto floor = static_power(meter, block);
  const std::vector<Plateau> all = plateaus(meter, block);
  std::size_t ticks = 0, used = 0;
  for (const Plateau& one : all) {
    ticks += one.ticks.size();
    used += one.ticks.empty() ? 0 : 1;
  }
  if (!floor || used < 2) return 0;
  const double none = left(all, floor->watts.value, 0);
  double best = 0, least = none;
  for (double t = 0.02; t <= kLongest; t *= kRatio)
    if (const double here = left(all, floor->watts.value, t); here < least) {
      least = here;
      best = t;
    }
  // By chance one more parameter takes 4 variances (95 %); models that do not fit take more.
  constexpr double kMuch = 12;
  const double free = static_cast<double>(ticks - 2 * used - 1);
  const double variance = std::max(1.0, least / std::max(1.0, free));
  return best >= kShortest && none - least > kMuch * variance ? best : 0;
}

}  // namespace joulediff::meter
