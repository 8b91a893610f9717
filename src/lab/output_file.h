// The run file that a recording is to write.
#pragma once

#include <string>

#include "base/result.h"

namespace joulediff::lab {

// Whether it can be written, before anything is recorded: it is a new file or may be replaced, and
// no other recording of it is running, or waits to be recovered.
enum class Recovering { no, yes };
Status check_output(const std::string& output, bool force, Recovering recovering = Recovering::no);

}  // namespace joulediff::lab
