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

// A process and its descendants. Those whose parents have ended are followed where they came to
// this process (PR_SET_CHILD_SUBREAPER): a child of ours that is younger than the root is the
// tree's.
class ProcessTree {
 public:
  explicit ProcessTree(pid_t root) : root_(root) {}
  // Of all of them and of those that have ended, in nanoseconds since the root's start. Never
  // falls.
  Nanoseconds processor_time();
  // The root first; those that have ended, but are not yet waited for, too.
  std::vector<pid_t> members();
  bool contains(pid_t pid);

 private:
  void find_members();

  pid_t root_;
  std::vector<pid_t> members_;
  int reads_ = 0;
  Nanoseconds last_ = 0;   // what the processes alive at the last read had used
  Nanoseconds ended_ = 0;  // used by processes that left no trace of it
};

// The command line of a process, cut to a line; its name where it has none; empty: it is gone.
std::string command_of(pid_t pid);

// Whether the process is one that Python's multiprocessing keeps beside the program, and that ends
// by itself soon after it: the resource tracker, or the fork server.
bool is_pythons_helper(pid_t pid);

// Processor time of the whole machine, all cores, in nanoseconds since its start: neither idle, nor
// waiting for a disk, nor taken by a hypervisor.
std::optional<Nanoseconds> machine_busy_time(const std::string& stat = "/proc/stat");

}  // namespace joulediff::device
