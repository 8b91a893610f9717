// What there is to say about MLPerf submissions: each alone, and all of them together.
#pragma once

#include <string>
#include <vector>

#include "rules/mlperf.h"
#include "run/submission.h"

namespace joulediff::report {

struct MlperfEntry {
  run::Submission submission;  // its series may have been dropped: they are not printed
  rules::MlperfJudgement judgement;
};

struct MlperfPage {
  std::vector<MlperfEntry> entries;
  std::size_t top = 10;  // submissions told one by one, and rows of a table
};

// At most 100 columns.
std::string text(const MlperfPage& page);
std::string json(const MlperfPage& page);  // schema joulediff.mlperf/1

}  // namespace joulediff::report
