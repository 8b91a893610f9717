// The sensors of a board from one recording: each source alone gives its rhythm; window and lag
// need something to hold it against, the load's edges or another source that is finer, and of those
// the one is taken that explains it best.
#include "meter/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/format.h>

#include "meter/floors.h"
#include "meter/spread.h"

namespace joulediff::meter {
namespace {

constexpr Nanoseconds kCell = 1'000'000;
constexpr std::string_view kLoad = "the load";

// Kernels that follow one another closely are one stretch of load.
Intervals busy_of(const run::Run& run, const run::Block& block, const std::string& uuid) {
  constexpr Nanoseconds kApart = 1'000'000;
  const run::KernelSeries& kernels = block.trace_kernels;
  Intervals busy;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const run::DeviceId device = kernels.device_of(i);
    if (device.valid() && run.devices[device.index()].uuid != uuid) continue;
    const Nanoseconds begin = kernels.start[i], end = begin + kernels.duration[i];
    if (busy.empty() || begin - busy.back().second > kApart)
      busy.emplace_back(begin, end);
    else
      busy.back().second = std::max(busy.back().second, end);
  }
  return busy;
}

struct Source {
  const run::Series* series;
  Updates power;  // a counter's is made from its differences
};

// What a source can be held against.
struct Reference {
  std::string name;
  Load load;
  double resolution = 0;  // seconds
};

std::vector<Reference> references(const std::vector<Source>& sources, const Intervals& busy) {
  std::vector<Reference> all;
  if (!busy.empty()) all.push_back({std::string(kLoad), Load::busy(busy, kCell), 0});
  // A board's finest source: of the others none is finer than what is held against it.
  for (const Source& source : sources)
    if (source.series->source == run::Source::nvml_power_samples) {
      const Property period = rhythm(*source.series).period;
      all.push_back({std::string(name_of(source.series->source)),
                     Load::drawn({*source.series}, source.series->source, kCell),
                     period.identified() ? period.value : 0});
    }
  return all;
}

void widen(Property& property, double by) {
  if (!property.identified()) return;
  property.low -= by;
  property.high += by;
}

void add_response(const Source& source, const std::vector<Reference>& all, SensorModel& model) {
  model.window = model.lag = Property::unknown("neither a load nor a finer source was recorded");
  for (const Reference& reference : all) {
    if (reference.name == name_of(source.series->source)) continue;
    Response found = response(source.power, reference.load);
    if (!model.against.empty() && found.explained <= model.explained) continue;
    model.against = reference.name;
    model.explained = found.explained;
    model.residual = found.residual;
    // Edges in a source that is itself a mean are known to within that.
    widen(found.window, reference.resolution / 2);
    widen(found.lag, reference.resolution / 2);
    model.window = std::move(found.window);
    model.lag = std::move(found.lag);
  }
}

Property sampled(const SensorModel& model) {
  if (!model.window.identified()) return Property::unknown("its window is not identified");
  if (!model.period.identified()) return Property::unknown("its period is not identified");
  const auto share = [&](double window) {
    return std::clamp(window / model.period.value, 0.0, 1.0);
  };
  return {share(model.window.value), share(model.window.low), share(model.window.high), {}};
}

// Mean power between two instants, each reading for the time since the one before.
double level(const Updates& power, Nanoseconds begin, Nanoseconds end) {
  double joules = 0, seconds = 0;
  for (std::size_t i = 1; i < power.size(); ++i) {
    const Nanoseconds from = std::max(begin, power.time[i - 1]), to = std::min(end, power.time[i]);
    if (to <= from) continue;
    joules += power.value[i] * to_seconds(to - from).value;
    seconds += to_seconds(to - from).value;
  }
  return seconds > 0 ? joules / seconds : 0;
}

Property gain(const Source& source, const Source* counter) {
  constexpr std::size_t kParts = 8;
  constexpr double kShortest = 1;  // seconds of a part
  if (source.series->source == run::Source::nvml_power_memory)
    return Property::unknown("it sees the memory alone");
  if (source.series->source == run::Source::nvml_power_module)
    return Property::unknown("it sees the whole module");
  if (!counter) return Property::unknown("no energy counter was recorded");
  if (counter == &source) return Property::unknown("the others are held against it");
  if (source.power.size() < 2 || counter->power.size() < 2)
    return Property::unknown("too few readings");
  const Nanoseconds begin = std::max(source.power.time.front(), counter->power.time.front());
  const Nanoseconds end = std::min(source.power.time.back(), counter->power.time.back());
  if (to_seconds(end - begin).value < kShortest * kParts)
    return Property::unknown("the two were recorded together for too short a time");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto at = [&](std::size_t part) {
      return begin +
             (end - begin) / static_cast<Nanoseconds>(kParts) * static_cast<Nanoseconds>(part);
    };
    const double beside = level(counter->power, at(i), at(i + 1));
    if (beside > 0) ratios.push_back(level(source.power, at(i), at(i + 1)) / beside);
  }
  if (ratios.size() < kParts) return Property::unknown("the counter stood still");
  const double ratio = level(source.power, begin, end) / level(counter->power, begin, end);
  const double half = spread_of_mean(ratios);
  return {ratio, ratio - half, ratio + half, {}};
}

SensorModel model_of(const Source& source, const Source* counter, const std::vector<Reference>& all,
                     const Intervals& busy) {
  constexpr double kSettle = 0.3;
  SensorModel model;
  model.source = source.series->source;
  model.readings = source.series->time.size();
  Rhythm own = rhythm(*source.series);
  model.period = std::move(own.period);
  model.jitter = std::move(own.jitter);
  model.tick = std::move(own.tick);
  add_response(source, all, model);
  model.sampled = sampled(model);
  model.gain = gain(source, counter);
  const double window = model.window.identified() ? model.window.value : 0;
  model.aliases = aliases(source.power, busy, std::max(kSettle, 1.2 * window));
  if (model.aliases.empty())
    model.no_aliases = busy.empty() ? "no load that is known was recorded"
                                    : "no equal pulses, with pauses that it can settle in";
  return model;
}

// The longest series of each source of a board, in one block.
std::map<run::Source, const run::Series*> longest(const run::Block& block,
                                                  const std::string& uuid) {
  std::map<run::Source, const run::Series*> all;
  for (const run::Series& series : block.series) {
    if (series.channel != uuid || unit(series.source) == 0 || series.time.empty()) continue;
    const run::Series*& best = all[series.source];
    if (!best || best->time.size() < series.time.size()) best = &series;
  }
  return all;
}

std::vector<SensorModel> sensors(const run::Run& run, const std::string& uuid) {
  // Blocks are processes of one program: the one that lasted longest tells most.
  const auto lasts = [](const run::Block& block) { return block.end - block.begin; };
  const run::Block* block = nullptr;
  for (const run::Block& one : run.blocks)
    if (!longest(one, uuid).empty() && (!block || lasts(one) > lasts(*block))) block = &one;
  std::vector<SensorModel> all;
  if (!block) return all;
  std::vector<Source> sources;
  for (const auto& [source, series] : longest(*block, uuid)) {
    Updates seen = updates(*series);
    sources.push_back({series, run::is_energy_counter(source) ? powers(seen) : std::move(seen)});
  }
  const auto counter = std::ranges::find_if(
      sources, [](const Source& source) { return run::is_energy_counter(source.series->source); });
  const Intervals busy = busy_of(run, *block, uuid);
  const std::vector<Reference> beside = references(sources, busy);
  for (const Source& source : sources)
    all.push_back(model_of(source, counter == sources.end() ? nullptr : &*counter, beside, busy));
  return all;
}

// "2026-12-01", from the clocks of the recording.
std::string date_of(const run::Run& run) {
  const auto wall = run.manifest.facts.find("wall_minus_monotonic_ns");
  if (wall == run.manifest.facts.end() || run.blocks.empty()) return {};
  const Nanoseconds ns = run.blocks.front().begin + std::strtoll(wall->second.c_str(), nullptr, 10);
  const std::chrono::sys_time<std::chrono::nanoseconds> time{std::chrono::nanoseconds(ns)};
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(time));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

bool is_board(run::Source source) {
  return source == run::Source::nvml_energy || source == run::Source::nvml_power_samples ||
         source == run::Source::nvml_power_instant || source == run::Source::nvml_power_average ||
         source == run::Source::amd_energy || source == run::Source::amd_power;
}

std::string fact(const run::Run& run, const std::string& key) {
  const auto found = run.manifest.facts.find(key);
  return found == run.manifest.facts.end() ? std::string() : found->second;
}

std::string board_name(const run::Run& run, const std::string& uuid) {
  const auto device = std::ranges::find(run.devices, uuid, &run::Device::uuid);
  return device == run.devices.end() ? run.manifest.device : device->name;
}

}  // namespace

std::vector<Profile> calibrate(const run::Run& run) {
  std::vector<std::string> boards;
  for (const run::Block& block : run.blocks)
    for (const run::Series& series : block.series)
      if (is_board(series.source) && std::ranges::find(boards, series.channel) == boards.end())
        boards.push_back(series.channel);
  std::vector<Profile> all;
  for (const std::string& uuid : boards) {
    Profile profile{board_name(run, uuid),
                    uuid,
                    fact(run, "driver"),
                    date_of(run),
                    sensors(run, uuid),
                    {},
                    {},
                    {}};
    const auto counter = std::ranges::find_if(profile.sensors, [](const SensorModel& model) {
      return run::is_energy_counter(model.source);
    });
    profile.static_per_celsius = Property::unknown("no energy counter was recorded");
    if (counter != profile.sensors.end()) {
      Meter meter;
      meter.source = counter->source;
      meter.channels = {uuid};
      add_floors(run, meter, profile);
      add_coefficients(run, meter, profile);
    }
    all.push_back(std::move(profile));
  }
  return all;
}

std::optional<StaticPower> static_power(const Profile& profile) {
  for (const char* state : {kSpinning, kIdle}) {
    std::vector<double> watts;
    double half = 0;
    for (const Floor& floor : profile.floors)
      if (floor.state == state) {
        watts.push_back(floor.watts.value);
        half = std::max(half, floor.watts.high - floor.watts.value);
      }
    if (!watts.empty())
      return StaticPower{Watts(mean(watts)), Watts(std::max(half, spread_of_mean(watts))), state};
  }
  return std::nullopt;
}

std::string profile_fact(std::string_view uuid) {
  return fmt::format("calibration.{}", uuid);
}

std::optional<Profile> profile_of(const run::Run& run, std::string_view uuid) {
  const auto found = run.manifest.facts.find(profile_fact(uuid));
  if (found == run.manifest.facts.end()) return std::nullopt;
  const auto kept = profiles_from_json(found->second);
  if (!kept || kept->size() != 1) return std::nullopt;
  return kept->front();
}

}  // namespace joulediff::meter
