#include "lab/diagnostics.h"

#include <utility>

namespace joulediff::lab {

void diagnose(run::Run& run, Diagnostic diagnostic) {
  for (Diagnostic& earlier : run.diagnostics)
    if (earlier.rule == diagnostic.rule && earlier.message == diagnostic.message) {
      earlier.count += diagnostic.count;
      return;
    }
  run.diagnostics.push_back(std::move(diagnostic));
}

void diagnose(run::Run& run, Severity severity, std::string rule, std::string message,
              std::uint64_t count) {
  diagnose(run, {severity, std::move(rule), std::move(message), count});
}

}  // namespace joulediff::lab
