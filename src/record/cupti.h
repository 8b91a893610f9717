// libcupti, found at run time.
#pragma once

#include <string>

#include "record/cupti_abi.h"

namespace joulediff::record {

// Prefers the library that the process has already (a framework's own), then JOULEDIFF_CUPTI's path
// before all others. False: there is none that serves, and `why` says so.
bool load_cupti(cupti::Functions& functions, std::uint32_t& version, std::string& why);

}  // namespace joulediff::record
