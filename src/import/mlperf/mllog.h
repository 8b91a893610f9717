// Lines of `:::MLLOG {...}`: what LoadGen, training programs and the loggers of power write. Ranks
// and launchers may put words in front of them.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "run/submission.h"

namespace joulediff::mlperf {

run::LoadGenLog read_loadgen(const std::string& file, std::string_view detail,
                             Diagnostics& diagnostics);

// mlperf_log_summary.txt: what people read; compared with the detail.
void read_summary(std::string_view text, run::LoadGenLog& log);

// result_i.txt.
run::TrainingRun read_training_result(const std::string& file, std::string_view text,
                                      Diagnostics& diagnostics);

// node_j.txt and sw_k.txt.
run::TrainingMeter read_training_power(const std::string& file, std::string_view text,
                                       Diagnostics& diagnostics);

}  // namespace joulediff::mlperf
