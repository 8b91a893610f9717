// A whole run as JSON, schema "joulediff.run/1" (docs/file-format.md): for reading by people and
// other programs, and for tests that want a run as text.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "run/model.h"

namespace joulediff::run {

// Equal runs give equal text: one record a line, in the order of the run. Text that is not UTF-8
// loses the bytes that are not.
std::string to_json(const Run& run);

// Reads what to_json writes; lists and fields that are left out are empty or their defaults. The
// run is validated.
Result<Run> from_json(std::string_view text);

}  // namespace joulediff::run
