// Diagnostics of a run while it is put together.
#pragma once

#include <cstdint>
#include <string>

#include "run/model.h"

namespace joulediff::lab {

// Counts as many more of the same where rule and message are those of an earlier diagnostic.
void diagnose(run::Run& run, Diagnostic diagnostic);
void diagnose(run::Run& run, Severity severity, std::string rule, std::string message,
              std::uint64_t count = 1);

}  // namespace joulediff::lab
