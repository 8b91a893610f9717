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
  std::string message;  // what and where, in one line; what to do, where there is no `remedy`
  std::uint64_t count = 1;
  std::string remedy{};  // the command or step that mends it; empty: none, or the message has it
};

using Diagnostics = std::vector<Diagnostic>;

// What people read of it, in one line.
inline std::string told(const Diagnostic& diagnostic) {
  return diagnostic.remedy.empty() ? diagnostic.message
                                   : diagnostic.message + ": " + diagnostic.remedy;
}

}  // namespace joulediff
