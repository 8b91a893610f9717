// MLPerf results on disk: one submission, or a whole tree of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/submission.h"

namespace joulediff::mlperf {

// Where submissions lie below `folder`, in the order of their names: the folder that holds run_1
// (inference), the one that holds power/result_* (training) or energy/ (Tiny). Links are not
// followed. An error where the folder cannot be read or there are none.
struct Found {
  run::SubmissionKind kind;
  std::string path;
};
Result<std::vector<Found>> find_submissions(const std::string& folder);

// Reads all that is asked for; what is missing or broken is a diagnostic.
run::Submission read_submission(const Found& found);

}  // namespace joulediff::mlperf
