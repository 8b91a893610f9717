// MLPerf submissions for the golden cases: in DIR/mlperf, as a results tree has them.
#pragma once

#include <string>

namespace joulediff::golden {

void write_submissions(const std::string& folder);

}  // namespace joulediff::golden
