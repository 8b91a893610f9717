// The other files of a submission: client.json and server.json, ptd_logs.txt, the system's
// description, and what says how far training results are scaled.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "run/submission.h"

namespace joulediff::mlperf {

run::Session read_session(const std::string& file, std::string_view text, Diagnostics& diagnostics);
run::PtdLog read_ptd_log(const std::string& file, std::string_view text, Diagnostics& diagnostics);

// Text, numbers and what lies in one object below, as text.
std::map<std::string, std::string> read_description(const std::string& file, std::string_view text,
                                                    Diagnostics& diagnostics);
std::optional<double> read_scaling(const std::string& file, std::string_view text,
                                   Diagnostics& diagnostics);
// sources_checksums.json of the official checker: a list of releases, each with the hash of its
// files.
Result<std::vector<std::map<std::string, std::string>>> read_known_sources(const std::string& path);
// A list of numbers, none of them less than the one before.
std::vector<double> read_timestamps(const std::string& file, std::string_view text,
                                    Diagnostics& diagnostics);

}  // namespace joulediff::mlperf
