// Runs one program with the recorder in it, reads the meters meanwhile, and answers its replay.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "lab/installation.h"
#include "lab/meters.h"
#include "lab/replay_judge.h"
#include "run/model.h"

namespace joulediff::lab {

// What docs/recording.md calls the environment.
struct Settings {
  std::string region;  // empty: the outermost nn.Module call
  unsigned steps = 0;
  double trace_seconds = 0;
  std::string passes;
};

struct Launch {
  std::vector<std::string> command;
  std::filesystem::path spool;  // an empty folder
  Settings settings;
  std::function<Nanoseconds()> replay_budget;  // asked when the replay begins
  std::function<void()> tick = [] {};          // called about ten times a second meanwhile
};

struct Launched {
  pid_t pid = 0;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  int exit_status = 0;       // as a shell has it: 128 + the signal that ended it
  bool interrupted = false;  // by Ctrl-C or SIGTERM to us
  std::vector<run::Series> series;
  Diagnostics diagnostics;  // of the meters
  ReplayJudge::Tally replay;
};

// The program runs in a process group of its own, with our stdout and stderr. Its stdin is ours
// unless that is a terminal, which a group in the background could not read.
// Ctrl-C once asks the group to end (SIGINT), twice kills it; what was recorded is kept.
Result<Launched> launch(const Launch& launch, const Installation& installation,
                        const Meters& meters);

// The environment of the program: ours, with docs/recording.md's variables set.
std::vector<std::string> recording_environment(const Launch& launch,
                                               const Installation& installation,
                                               const std::string& socket);

}  // namespace joulediff::lab
