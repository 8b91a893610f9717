// May two runs be compared at all? One small function for each rule, each with id, severity, a
// message with its figures, and the remedy.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "run/model.h"

namespace joulediff::rules {

// Severity::error refuses the comparison (exit code 5).
struct Verdict {
  bool ok = true;
  bool recorded_apart = false;
  std::vector<Diagnostic> reasons;
};

Verdict comparable(const run::Run& a, const run::Run& b);

}  // namespace joulediff::rules
