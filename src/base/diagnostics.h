// Imperfect input is a declared, counted diagnostic, shown by every report; it never stops a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace joulediff {

enum class Severity { note, warning, error };

struct Diagnostic {
  Severity severity = Severity::note;
  std::string rule;     // a stable key, such as "record.dropped_kernels"
  std::string message;  // what, where and what to do, in one line
  std::uint64_t count = 1;
};

using Diagnostics = std::vector<Diagnostic>;

}  // namespace joulediff
