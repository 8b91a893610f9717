#include "meter/floors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include <boost/math/statistics/linear_regression.hpp>
#include <fmt/format.h>

#include "meter/spread.h"
#include "meter/window.h"

namespace joulediff::meter {
namespace {

constexpr std::string_view kLoads = "calibrate.";

// "calibrate.copy(level=hbm, values=zeros, byte=2e9)" -> "copy", {level, hbm}, ...
struct Task {
  std::string what;
  std::map<std::string, std::string> arguments;

  std::string argument(const std::string& key) const {
    const auto found = arguments.find(key);
    return found == arguments.end() ? std::string() : found->second;
  }
  double number(const std::string& key) const {
    const std::string text = argument(key);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
};

std::optional<Task> parse(std::string_view text) {
  const std::size_t open = text.find('(');
  if (!text.starts_with(kLoads) || open == std::string_view::npos || text.back() != ')')
    return std::nullopt;
  Task load{std::string(text.substr(kLoads.size(), open - kLoads.size())), {}};
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    const std::string_view one = rest.substr(0, end);
    if (const std::size_t equals = one.find('='); equals != std::string_view::npos)
      load.arguments.emplace(one.substr(0, equals), one.substr(equals + 1));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return load;
}

double mean_in(const run::Block& block, run::Source source, const Reading& window) {
  std::vector<double> values;
  for (const run::Series& series : block.series) {
    if (series.source != source) continue;
    for (std::size_t i = 0; i < series.time.size(); ++i)
      if (series.time[i] >= window.begin && series.time[i] <= window.end)
        values.push_back(static_cast<double>(series.value[i]));
  }
  return mean(values);
}

// What a window's parts differ by is its interval, or what its ends are uncertain by.
Property power_in(const Meter& meter, const run::Block& block, const Reading& reading) {
  std::vector<double> powers;
  for (const Reading& part : parts(meter, block, reading)) powers.push_back(part.power().value);
  const double watts = reading.power().value;
  const double half =
      std::max(reading.energy.half_width().value / reading.seconds().value, spread_of_mean(powers));
  return {watts, watts - half, watts + half, {}};
}

// Windows of the loads that are called `what`, with the load.
struct Done {
  Task load;
  Window window;
  const run::Block* block;
};
std::vector<Done> done(const run::Run& run) {
  std::vector<Done> all;
  for (const run::Block& block : run.blocks) {
    std::map<std::uint32_t, std::vector<run::Replay>> chunks;
    for (const run::Replay& replay : block.replays)
      if (replay.kind == run::ReplayKind::op && replay.signature.valid())
        chunks[static_cast<std::uint32_t>(replay.signature.index())].push_back(replay);
    for (auto& [signature, list] : chunks)
      if (const auto load = parse(run.signatures[signature].text))
        for (Window& window : contiguous(std::move(list)))
          all.push_back({*load, std::move(window), &block});
  }
  return all;
}

void add_floor(const Meter& meter, const run::Block& block, const Window& window,
               const std::string& state, Profile& profile) {
  const auto reading = read(meter, block, window.begin + settle(meter), window.end);
  if (!reading) return;
  profile.floors.push_back({state, power_in(meter, block, *reading),
                            mean_in(block, run::Source::nvml_sm_clock, *reading),
                            mean_in(block, run::Source::nvml_temperature, *reading)});
}

// By a straight line through the spinning kernel's windows.
Property per_celsius(const std::vector<Floor>& floors) {
  constexpr double kLeastRange = 5;
  constexpr std::size_t kFewest = 3;
  std::vector<double> celsius, watts;
  for (const Floor& floor : floors)
    if (floor.state == kSpinning && floor.celsius > 0) {
      celsius.push_back(floor.celsius);
      watts.push_back(floor.watts.value);
    }
  if (celsius.size() < kFewest)
    return Property::unknown(
        fmt::format("only {} windows of a spinning kernel at a known temperature", celsius.size()));
  const auto [least, most] = std::ranges::minmax(celsius);
  if (most - least < kLeastRange)
    return Property::unknown(
        fmt::format("the temperature moved by {:.0f} degrees only", most - least));
  const auto [at_zero, slope] =
      boost::math::statistics::simple_ordinary_least_squares(celsius, watts);
  const double middle = mean(celsius);
  double error = 0, spread = 0;
  for (std::size_t i = 0; i < celsius.size(); ++i) {
    error += std::pow(watts[i] - at_zero - slope * celsius[i], 2);
    spread += std::pow(celsius[i] - middle, 2);
  }
  const double freedom = static_cast<double>(celsius.size() - 2);
  const double half = student_t(celsius.size() - 1) * std::sqrt(error / freedom / spread);
  return {slope, slope - half, slope + half, {}};
}

// Joules of one execution above static power, divided by its work.
std::optional<Property> unit_cost(const Meter& meter, const Done& one, double work,
                                  const StaticPower& floor) {
  const auto reading = read(meter, *one.block, one.window.begin + settle(meter), one.window.end);
  if (!reading) return std::nullopt;
  const double count = one.window.executions(reading->begin, reading->end);
  if (count <= 0) return std::nullopt;
  const Property watts = power_in(meter, *one.block, *reading);
  const double seconds = reading->seconds().value / count / work;
  const double joules = (watts.value - floor.watts.value) * seconds;
  const double half = std::hypot(watts.high - watts.value, floor.half_width.value) * seconds;
  return Property{joules, joules - half, joules + half, {}};
}

}  // namespace

void add_floors(const run::Run& run, const Meter& meter, Profile& profile) {
  for (const run::Block& block : run.blocks) {
    for (const Window& window : floor_windows(block, run::ReplayKind::static_power))
      add_floor(meter, block, window, kSpinning, profile);
    for (const Window& window : floor_windows(block, run::ReplayKind::idle))
      add_floor(meter, block, window, kIdle, profile);
  }
  for (const Done& one : done(run))
    if (one.load.what == "idle")
      add_floor(meter, *one.block, one.window, one.load.argument("state"), profile);
  profile.static_per_celsius = per_celsius(profile.floors);
}

void add_coefficients(const run::Run& run, const Meter& meter, Profile& profile) {
  const auto floor = static_power(profile);
  if (!floor) return;
  for (const Done& one : done(run))
    for (const std::string per : {"flop", "byte"}) {
      const double work = one.load.number(per);
      if (work <= 0) continue;
      const auto cost = unit_cost(meter, one, work, *floor);
      if (!cost) continue;
      std::string what = one.load.what;
      for (const auto& [key, value] : one.load.arguments)
        if (key != per && key != "values") what += fmt::format(" {}={}", key, value);
      auto found = std::ranges::find(profile.coefficients, what, &Coefficient::what);
      if (found == profile.coefficients.end())
        found = profile.coefficients.insert(found, {what, per, *cost, {}});
      found->by_values.emplace_back(one.load.argument("values"), *cost);
    }
  for (Coefficient& coefficient : profile.coefficients) {
    std::vector<double> values;
    for (const auto& [name, cost] : coefficient.by_values) {
      values.push_back(cost.value);
      coefficient.joules.low = std::min(coefficient.joules.low, cost.low);
      coefficient.joules.high = std::max(coefficient.joules.high, cost.high);
    }
    coefficient.joules.value = mean(values);
  }
}

}  // namespace joulediff::meter
