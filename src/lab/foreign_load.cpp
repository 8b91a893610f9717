#include "lab/foreign_load.h"

#include <fmt/format.h>

namespace joulediff::lab {

void ForeignLoad::before(const std::vector<device::BoardProcess>& users) {
  for (const device::BoardProcess& user : users) before_.insert(user.pid);
}

void ForeignLoad::during(const std::vector<device::BoardProcess>& users,
                         const std::function<bool(pid_t)>& ours,
                         const std::function<std::string(pid_t)>& name) {
  for (const device::BoardProcess& user : users) {
    if (foreign_.contains(user.pid)) continue;
    const auto pid = static_cast<pid_t>(user.pid);
    const std::string called = name(pid);
    const bool foreign = before_.contains(user.pid) || (!called.empty() && !ours(pid));
    if (!foreign) continue;
    const std::string memory = user.memory
                                   ? fmt::format(", {:.1f} GiB", static_cast<double>(*user.memory) /
                                                                     (1024.0 * 1024 * 1024))
                                   : "";
    foreign_[user.pid] =
        fmt::format("{} (process {}{})", called.empty() ? "a process" : called, user.pid, memory);
  }
}

std::string ForeignLoad::described() const {
  std::string all;
  for (const auto& [pid, text] : foreign_) all += (all.empty() ? "" : ", ") + text;
  return all;
}

}  // namespace joulediff::lab
