// Who else uses a board while a program is recorded on it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/diagnostics.h"
#include "device/nvml.h"

namespace joulediff::lab {

// A driver may number processes as another namespace does, where our own program has a number that
// we do not know. So a process is foreign if it was there before our program, or if we can see it
// and it is not of the program's tree; one that is neither may be the program.
class ForeignLoad {
 public:
  void before(const std::vector<device::BoardProcess>& users);
  // `ours`: is of the program's tree; `name`: of a process that we can see, else empty.
  void during(const std::vector<device::BoardProcess>& users,
              const std::function<bool(pid_t)>& ours,
              const std::function<std::string(pid_t)>& name);

  // "python3 (process 4711, 3.0 GiB)", ...; empty: nobody.
  std::string described() const;

 private:
  std::set<std::uint32_t> before_;
  std::map<std::uint32_t, std::string> foreign_;
};

}  // namespace joulediff::lab
