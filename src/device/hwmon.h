// Power and energy sensors of the machine's own monitoring chips (Linux hwmon): current-sense
// amplifiers on rails (INA219, INA226, INA3221 of a Jetson), power supplies, platform meters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "device/counter.h"

namespace joulediff::device {

class Hwmon {
 public:
  enum class Kind { power, energy };  // microwatts, microjoules
  struct Reading {
    Kind kind = Kind::power;
    std::string channel;  // "ina3221 VDD_GPU"
    Counter::Reading value;
  };

  // `root`: hwmon's folder of sysfs.
  static Hwmon open(const std::string& root = "/sys/class/hwmon");
  bool empty() const { return sensors_.empty(); }
  // A read may take milliseconds: the chips are behind slow buses. A sensor that does not answer is
  // left out.
  std::vector<Reading> read(Nanoseconds now);

 private:
  struct Sensor {
    Kind kind = Kind::power;
    std::string channel;
    std::string file;     // the value, or millivolts where `current` is given
    std::string current;  // milliamperes
    bool zero_is_unknown = false;
    Counter counter;
  };
  static std::optional<std::int64_t> value(const Sensor& sensor);
  std::vector<Sensor> sensors_;
};

}  // namespace joulediff::device
