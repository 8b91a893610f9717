#include "meter/meter.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "meter/spread.h"
#include "meter/window.h"

namespace joulediff::meter {
namespace {

const Meter kBoardCounter{"NVML energy counter", Boundary::board, 0.05, Standing::measured,
                          run::Source::nvml_energy};
const Meter kAmdCounter{"ROCm energy counter", Boundary::board, 0.05, Standing::measured,
                        run::Source::amd_energy};
const Meter kPackageCounter{"RAPL package counter", Boundary::host, 0.05, Standing::measured,
                            run::Source::rapl_package};
// What these see of the machine, and how well, nobody says.
const Meter kPlatformCounter{"RAPL platform counter", Boundary::node, std::nullopt,
                             Standing::measured, run::Source::rapl_psys};
const Meter kRailCounter{"hwmon energy counter", Boundary::rail, std::nullopt, Standing::measured,
                         run::Source::hwmon_energy};
const Meter kRailPower{"hwmon power", Boundary::rail, std::nullopt, Standing::measured,
                       run::Source::hwmon_power};
const Meter kHostModel{"host model (processor time x watts of a busy core)", Boundary::host,
                       kBusyCore.high / kBusyCore.middle - 1, Standing::modelled,
                       run::Source::host_cpu};

// The channels of the boards that the run used; where it does not say, the first board's.
std::vector<std::string> used_channels(const run::Run& run, run::Source source) {
  std::vector<std::string> all, used;
  for (const run::Block& block : run.blocks)
    for (const run::Series& series : block.series)
      if (series.source == source && std::ranges::find(all, series.channel) == all.end())
        all.push_back(series.channel);
  const auto uses = [&](const std::string& channel) {
    return std::ranges::find(run.devices, channel, &run::Device::uuid) != run.devices.end();
  };
  std::ranges::copy_if(all, std::back_inserter(used), uses);
  if (used.empty())
    std::ranges::copy_if(all, std::back_inserter(used), [&](const std::string& channel) {
      return !channel.empty() && channel == run.manifest.device_uuid;
    });
  if (used.empty() && !all.empty()) used.push_back(all.front());
  return used;
}

// What a chip of hwmon sees, by the name of its driver, with which its channels begin.
Boundary boundary_of_chip(std::string_view channel) {
  using enum Boundary;
  constexpr std::pair<std::string_view, Boundary> kKnown[] = {
      {"amdgpu ", board}, {"amd_energy ", host}, {"power_meter ", node}};
  for (const auto& [chip, boundary] : kKnown)
    if (channel.starts_with(chip)) return boundary;
  return rail;
}

// One for each channel of the source.
void add_channels(const run::Run& run, Meter meter, std::vector<Meter>& all) {
  using enum run::Source;
  for (const run::Block& block : run.blocks)
    for (const run::Series& series : block.series) {
      if (series.source != meter.source) continue;
      if (series.source == hwmon_power || series.source == hwmon_energy)
        meter.boundary = boundary_of_chip(series.channel);
      const std::vector<std::string> channels{series.channel};
      const bool known = std::ranges::any_of(all, [&](const Meter& other) {
        return other.boundary == meter.boundary && other.channels == channels;
      });
      if (known) continue;
      all.push_back(meter);
      all.back().channels = channels;
      if (!series.channel.empty()) all.back().name += " " + series.channel;
    }
}

std::optional<Boundary> stated_boundary(const run::Run& run) {
  const auto stated = run.manifest.facts.find("meter_boundary");
  if (stated == run.manifest.facts.end()) return std::nullopt;
  using enum Boundary;
  for (const Boundary boundary : {rail, board, host, node, rack, facility})
    if (name(boundary) == stated->second) return boundary;
  return std::nullopt;
}

bool readable(const Meter& meter, const run::Run& run) {
  return std::ranges::any_of(run.blocks, [&](const run::Block& block) {
    return std::ranges::any_of(block.series, [&](const run::Series& series) {
      return series.source == meter.source && !series.time.empty() &&
             ticks(meter, block, series.time.front(), series.time.back()).size() >=
                 static_cast<std::size_t>(kMinimumTicks);
    });
  });
}

// Power over all windows of one kind; what they, or their parts, differ by is its interval.
std::optional<StaticPower> power_of(const Meter& meter, const run::Block& block,
                                    run::ReplayKind kind, std::string origin) {
  double joules = 0, seconds = 0, squares = 0, part_variance = 0;
  std::vector<double> powers;
  for (const Window& window : floor_windows(block, kind)) {
    const auto reading = read(meter, block, window.begin + settle(meter), window.end);
    if (!reading) continue;
    joules += reading->energy.joules.value;
    seconds += reading->seconds().value;
    squares += std::pow(reading->energy.half_width().value, 2);
    for (const Reading& part : parts(meter, block, *reading)) {
      powers.push_back(part.power().value);
      // A half width of 95 % is two standard deviations.
      part_variance += std::pow(part.energy.half_width().value / part.seconds().value / 2, 2);
    }
  }
  if (seconds == 0) return std::nullopt;
  if (!powers.empty()) part_variance /= static_cast<double>(powers.size());
  return StaticPower{
      Watts(joules / seconds),
      Watts(std::hypot(std::sqrt(squares) / seconds, spread_of_mean(powers, part_variance))),
      std::move(origin)};
}

}  // namespace

Nanoseconds settle(const Meter& meter) {
  return meter.source == run::Source::host_cpu ? 0 : kSettle;
}

std::vector<Meter> meters(const run::Run& run) {
  std::vector<Meter> best;
  for (Meter meter : {kBoardCounter, kAmdCounter, kPackageCounter, kHostModel}) {
    if (std::ranges::find(best, meter.boundary, &Meter::boundary) != best.end()) continue;
    if (meter.boundary == Boundary::board) meter.channels = used_channels(run, meter.source);
    if (readable(meter, run)) best.push_back(std::move(meter));
  }
  return best;
}

std::vector<Meter> meters_beside(const run::Run& run) {
  std::vector<Meter> all;
  for (const Meter& meter : {kPlatformCounter, kRailCounter, kRailPower})
    add_channels(run, meter, all);
  if (const auto boundary = stated_boundary(run))
    add_channels(
        run,
        {"outside meter", *boundary, std::nullopt, Standing::measured, run::Source::external_power},
        all);
  return all;
}

Result<Meter> choose_meter(const run::Run& run) {
  if (std::vector<Meter> best = meters(run); !best.empty()) return best.front();
  return fail(ExitCode::environment,
              "no meter: the run has neither an energy counter that moves (NVML, RAPL) nor "
              "processor time; run `joulediff doctor` on the machine, then record again");
}

std::optional<StaticPower> static_power(const Meter& meter, const run::Block& block) {
  if (meter.source == run::Source::host_cpu) return std::nullopt;
  if (auto power = power_of(meter, block, run::ReplayKind::static_power, kSpinning)) return power;
  return idle_power(meter, block);
}

std::optional<StaticPower> idle_power(const Meter& meter, const run::Block& block) {
  if (meter.source == run::Source::host_cpu) return std::nullopt;
  return power_of(meter, block, run::ReplayKind::idle, kIdle);
}

}  // namespace joulediff::meter
