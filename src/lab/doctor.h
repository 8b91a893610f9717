// What this machine lets us measure, what it does not, why, and what would mend it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulediff::lab {

enum class Health { good, partly, missing };
std::string_view name(Health health);  // "yes", "partly", "no"

struct Check {
  std::string what;  // a stable name: "board energy", "host energy", "kernels", ...
  Health health = Health::missing;
  std::string says;    // what was found, with its figures
  std::string remedy;  // the one command or step that mends it; empty: nothing to mend, or no way
};

// Where the operating system says things; other roots are for tests.
struct Places {
  std::string powercap = "/sys/class/powercap";
  std::string hwmon = "/sys/class/hwmon";
  std::string proc = "/proc";
  std::string nvidia = "/dev/nvidiactl";  // its driver
};

// Reads every meter once or for a fraction of a second; changes nothing. A driver that hangs is
// left alone after a few seconds.
std::vector<Check> examine(const Places& places = {});

}  // namespace joulediff::lab
