// The processor's own energy counters (RAPL) through Linux's powercap.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/units.h"
#include "device/counter.h"

namespace joulediff::device {

// Packages, memory and the whole platform, each a channel of its own. What is inside a package
// (core, uncore) is left out: its package has it. The platform has the packages in it, so the two
// are never to be added up.
class Rapl {
 public:
  enum class Kind { package, dram, platform };
  struct Domain {
    Kind kind = Kind::package;
    std::string channel;  // "package-0", "package-0 dram", "psys"
  };
  struct Reading {
    Domain domain;
    Counter::Reading microjoules;
  };

  // `root`: the powercap folder of sysfs. Without one there are no domains.
  static Rapl open(const std::string& root = "/sys/class/powercap");

  bool empty() const { return domains_.empty(); }
  // What every domain says at `now`. One that may not be read is tried again, once a second, for
  // permission may still arrive.
  std::vector<Reading> read(Nanoseconds now);
  // What cannot be given; said once, however often it is read.
  Diagnostics notes() const;

 private:
  struct Source {
    Domain domain;
    std::string file;
    std::int64_t range = 0;
    Counter counter;
    Nanoseconds retry = 0;
    bool read_once = false;
  };
  std::vector<Source> domains_;
  Diagnostics notes_;
};

}  // namespace joulediff::device
