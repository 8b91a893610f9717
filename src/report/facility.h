// The report of a facility study: for people as text and as a page, for programs as JSON, for
// spreadsheets as CSV.
#pragma once

#include <string>

#include "facility/study.h"

namespace joulediff::report {

std::string facility_text(const facility::Study& study);  // at most 100 columns
std::string facility_html(const facility::Study& study);  // one file that needs no other, no script
std::string facility_csv(const facility::Study& study);   // RFC 4180
std::string facility_json(const facility::Study& study);  // joulediff.facility/1

}  // namespace joulediff::report
