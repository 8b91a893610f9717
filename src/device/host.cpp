// Processor time of a process tree. A process's clock (clock_getcpuclockid) counts all its threads,
// ended ones too, in nanoseconds; what its ended and awaited children used is in its stat line, in
// ticks of 10 ms. The sum over the living is thus nearly all; where it falls all the same (a child
// that nobody waits for, the rounding of a tick) the difference is kept, so the total never falls.
#include "device/host.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sched.h>
#include <sstream>
#include <time.h>
#include <unistd.h>

#include "device/sysfs.h"

namespace joulediff::device {
namespace {

namespace fs = std::filesystem;

constexpr int kReadsPerSearch = 10;  // a child found late is still counted from its start

// The numbers of /proc/PID/stat from the third field on; the second may hold any character.
std::vector<std::int64_t> stat_fields(pid_t pid) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > line.size()) return {};
  std::istringstream rest(line.substr(name_end + 4));
  std::vector<std::int64_t> fields;
  for (std::int64_t value = 0; rest >> value;) fields.push_back(value);
  return fields;
}
// Places in stat_fields().
constexpr std::size_t kParent = 0;
constexpr std::size_t kUserTime = 10;
constexpr std::size_t kSystemTime = 11;
constexpr std::size_t kChildrenUserTime = 12;
constexpr std::size_t kChildrenSystemTime = 13;
constexpr std::size_t kStart = 18;

Nanoseconds from_ticks(std::int64_t ticks) {
  static const std::int64_t per_second = std::max(1L, sysconf(_SC_CLK_TCK));
  return ticks * (1'000'000'000 / per_second);
}

std::optional<Nanoseconds> time_of(pid_t pid) {
  const std::vector<std::int64_t> fields = stat_fields(pid);
  if (fields.size() <= kChildrenSystemTime) return std::nullopt;
  const Nanoseconds children = from_ticks(fields[kChildrenUserTime] + fields[kChildrenSystemTime]);
  clockid_t clock{};
  timespec own{};
  if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &own) == 0)
    return own.tv_sec * 1'000'000'000 + own.tv_nsec + children;
  return from_ticks(fields[kUserTime] + fields[kSystemTime]) + children;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (fs::directory_iterator it(tasks, error), end; !error && it != end; it.increment(error)) {
    std::ifstream file(it->path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

bool kernel_lists_children() {
  static const bool lists = fs::exists("/proc/self/task/" + std::to_string(getpid()) + "/children");
  return lists;
}

// For kernels without /proc/PID/task/TID/children.
std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const pid_t pid = std::atoi(it->path().filename().c_str());
    if (pid <= 0) continue;
    if (const auto fields = stat_fields(pid); !fields.empty())
      children.emplace(static_cast<pid_t>(fields[kParent]), pid);
  }
  return children;
}

// In ticks since boot; none: the process is gone.
std::optional<std::int64_t> start_of(pid_t pid) {
  const std::vector<std::int64_t> fields = stat_fields(pid);
  if (fields.size() <= kStart) return std::nullopt;
  return fields[kStart];
}

// In one line; empty: none, or gone.
std::string arguments_of(pid_t pid) {
  std::string line = first_line("/proc/" + std::to_string(pid) + "/cmdline");
  while (!line.empty() && line.back() == '\0') line.pop_back();
  std::replace(line.begin(), line.end(), '\0', ' ');  // each ends with one
  return line;
}

}  // namespace

void ProcessTree::find_members() {
  std::multimap<pid_t, pid_t> table;
  if (!kernel_lists_children()) table = children_by_parent();
  const auto children = [&table](pid_t pid) {
    if (kernel_lists_children()) return children_of(pid);
    std::vector<pid_t> all;
    const auto [begin, end] = table.equal_range(pid);
    for (auto child = begin; child != end; ++child) all.push_back(child->second);
    return all;
  };
  members_ = {root_};
  if (const auto root_start = start_of(root_))
    for (pid_t child : children(getpid()))
      if (child != root_ && start_of(child).value_or(-1) >= *root_start) members_.push_back(child);
  for (std::size_t i = 0; i < members_.size(); ++i)
    for (pid_t child : children(members_[i])) members_.push_back(child);
}

std::vector<pid_t> ProcessTree::members() {
  find_members();
  return members_;
}

Nanoseconds ProcessTree::processor_time() {
  if (reads_++ % kReadsPerSearch == 0) find_members();
  Nanoseconds alive = 0;
  for (pid_t pid : members_) alive += time_of(pid).value_or(0);
  if (alive < last_) ended_ += last_ - alive;
  last_ = alive;
  return ended_ + alive;
}

std::string command_of(pid_t pid) {
  constexpr std::size_t kLongest = 120;
  std::string line = arguments_of(pid);
  if (line.empty()) line = first_line("/proc/" + std::to_string(pid) + "/comm");
  return line.size() <= kLongest ? line : line.substr(0, kLongest) + "...";
}

bool is_pythons_helper(pid_t pid) {
  const std::string arguments = arguments_of(pid);
  return arguments.find("from multiprocessing.resource_tracker import main") != arguments.npos ||
         arguments.find("from multiprocessing.forkserver import main") != arguments.npos;
}

bool ProcessTree::contains(pid_t pid) {
  find_members();
  return std::ranges::find(members_, pid) != members_.end();
}

HostInfo host_info() {
  HostInfo info;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) info.name = name.data();
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; info.processor.empty() && std::getline(cpuinfo, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      info.processor = line.substr(line.find(": ") + 2);
  cpu_set_t allowed;
  info.cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                   ? static_cast<unsigned>(CPU_COUNT(&allowed))
                   : static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return info;
}

std::string boot_id() {
  return first_line("/proc/sys/kernel/random/boot_id");
}

std::optional<Nanoseconds> machine_busy_time(const std::string& stat) {
  // "cpu user nice system idle iowait irq softirq steal ..."; guests are in user already.
  std::istringstream line(first_line(stat));
  std::string name;
  std::array<std::int64_t, 7> ticks{};
  if (!(line >> name) || name != "cpu") return std::nullopt;
  for (std::int64_t& tick : ticks)
    if (!(line >> tick)) return std::nullopt;
  constexpr std::size_t kIdle = 3, kWaiting = 4;
  return from_ticks(std::accumulate(ticks.begin(), ticks.end(), std::int64_t{0}) - ticks[kIdle] -
                    ticks[kWaiting]);
}

}  // namespace joulediff::device
