#include "device/hwmon.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "device/sysfs.h"

namespace joulediff::device {
namespace {

namespace fs = std::filesystem;

constexpr double kFastest = 100'000e6;         // microjoules a second: a whole rack's meter
constexpr Nanoseconds kLumps = 2'000'000'000;  // platform meters move once a second

std::vector<fs::path> chips(const std::string& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    folders.push_back(it->path());
  std::ranges::sort(folders);
  return folders;
}

// The sensors of a chip by the number in their name: {1: "power1_input"}. Where a chip has both,
// `input` is preferred to `average`.
std::map<int, fs::path> sensors(const fs::path& chip, const std::string& kind) {
  std::map<int, fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(chip, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with(kind)) continue;
    const int number = std::atoi(name.c_str() + kind.size());
    const std::string what = fmt::format("{}{}", kind, number);
    if (name == what + "_input") found[number] = it->path();
    if (name == what + "_average" && kind == "power") found.try_emplace(number, it->path());
  }
  return found;
}

}  // namespace

Hwmon Hwmon::open(const std::string& root) {
  Hwmon hwmon;
  for (const fs::path& chip : chips(root)) {
    const std::string name = first_line(chip / "name");
    const auto add = [&](Kind kind, const std::string& sensor, int number, const fs::path& file,
                         const fs::path& current = {}) {
      std::string label = first_line(chip / fmt::format("{}{}_label", sensor, number));
      // What a socket's counter holds already.
      if (kind == Kind::energy && label.starts_with("Ecore")) return;
      if (label.empty()) label = fmt::format("{}{}", sensor, number);
      std::string channel = fmt::format("{} {}", name, label);
      if (std::ranges::any_of(hwmon.sensors_, [&](const Sensor& other) {
            return other.kind == kind && other.channel == channel;
          }))
        channel = fmt::format("{} {} ({})", name, label, chip.filename().string());
      // The second die of an MI250 shows 0 W: its package is metered on the first.
      const bool zero_is_unknown = name == "amdgpu";
      hwmon.sensors_.push_back(
          {kind, channel, file, current, zero_is_unknown, Counter(0, kFastest, kLumps)});
    };
    const auto powers = sensors(chip, "power");
    for (const auto& [number, file] : powers) add(Kind::power, "power", number, file);
    for (const auto& [number, file] : sensors(chip, "energy"))
      add(Kind::energy, "energy", number, file);
    // An INA3221 gives volts and amperes of three rails; its further inputs are shunts and sums.
    constexpr int kRails = 3;
    if (name != "ina3221" || !powers.empty()) continue;
    const auto currents = sensors(chip, "curr");
    for (const auto& [number, file] : sensors(chip, "in"))
      if (number <= kRails && currents.contains(number))
        add(Kind::power, "in", number, file, currents.at(number));
  }
  return hwmon;
}

std::optional<std::int64_t> Hwmon::value(const Sensor& sensor) {
  const auto first = number_in(sensor.file);
  if (!first || (sensor.zero_is_unknown && *first == 0)) return std::nullopt;
  if (sensor.current.empty()) return *first >= 0 ? first : std::nullopt;
  const auto milliamperes = number_in(sensor.current);
  if (!milliamperes || *first < 0) return std::nullopt;
  return std::max<std::int64_t>(0, *first * *milliamperes);  // a shunt's offset may be negative
}

std::vector<Hwmon::Reading> Hwmon::read(Nanoseconds now) {
  std::vector<Reading> readings;
  for (Sensor& sensor : sensors_) {
    const auto raw = value(sensor);
    if (!raw) continue;
    readings.push_back({sensor.kind, sensor.channel,
                        sensor.kind == Kind::energy ? sensor.counter.next(now, *raw)
                                                    : Counter::Reading{*raw, false}});
  }
  return readings;
}

}  // namespace joulediff::device
