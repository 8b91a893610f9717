// The sections of a text report, in the order in which they are read.
#pragma once

#include <string>

#include "report/page.h"

namespace joulediff::report {

std::string header(const Page& page);         // what was compared, and with what meter
std::string comparability(const Page& page);  // may these two be compared
std::string energy(const Page& page);         // of a step, per work unit, and the ledger
// What the run's other boundaries say beside it: no verdict rests on that.
std::string energy_beside(const Page& page);
std::string findings(const Page& page);
std::string regions(const Page& page);
std::string unmatched(const Page& page);
std::string operators(const Page& page);
std::string notes(const Page& page);  // diagnostics

// A section's title.
std::string title(const Page& page, const std::string& words);

enum class Ink { bold, red, yellow, green };
std::string painted(const Page& page, Ink ink, const std::string& words);

}  // namespace joulediff::report
