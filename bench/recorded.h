// The recorded GPT-2 pair of cases/hf-39073.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "run/run_file.h"

namespace joulediff::bench {

inline std::string path(const std::string& side) {
  return JOULEDIFF_SOURCE_DIR "/cases/hf-39073/runs/" + side + ".jd";
}

// Ends the benchmark where the file cannot be read: a number of something else would be worse.
inline run::Run read(const std::string& side) {
  Result<run::Run> run = run::read_run(path(side));
  if (run) return *std::move(run);
  std::fprintf(stderr, "%s\n", run.error().message.c_str());
  std::exit(1);
}

}  // namespace joulediff::bench
