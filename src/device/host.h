// What the operating system says of the machine and of a process tree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/units.h"

namespace joulediff::device {

struct HostInfo {
  std::string name;
  std::string processor;  // "AMD EPYC 9654 96-Core Processor"
  unsigned cores = 0;     // that this process may use
};
HostInfo host_info();

// Of the running kernel; two runs with the same have one monotonic clock. Empty where unknown.
std::string boot_id();

// Processor time of a process, its descendants and those that have ended, in nanoseconds since the
// root's start. Never falls.
class ProcessTree {
 public:
  explicit ProcessTree(pid_t root) : root_(root) {}
  Nanoseconds processor_time();

 private:
  void find_members();

  pid_t root_;
  std::vector<pid_t> members_;
  int reads_ = 0;
  Nanoseconds last_ = 0;   // what the processes alive at the last read had used
  Nanoseconds ended_ = 0;  // used by processes that left no trace of it
};

// Energy of the processor packages (RAPL), where the kernel lets us read it.
class Rapl {
 public:
  // `root`: the powercap folder of sysfs.
  static std::optional<Rapl> open(const std::string& root = "/sys/class/powercap");
  // Microjoules of all packages since open(), across wraps of their counters.
  std::optional<std::int64_t> energy();

 private:
  struct Package {
    std::string file;
    std::int64_t range = 0;  // the counter wraps after this
    std::int64_t last = 0;
  };
  std::vector<Package> packages_;
  std::int64_t total_ = 0;
};

}  // namespace joulediff::device
