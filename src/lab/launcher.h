// Runs one program with the recorder in it, reads the meters meanwhile, and answers its replay.
//
// The program is its whole tree of processes: a daemon whose parents have ended comes to us. When
// its root has ended, those that still record are waited for, and those that stay are ended.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "lab/installation.h"
#include "lab/meters.h"
#include "lab/replay_judge.h"
#include "lab/signals.h"
#include "run/model.h"

namespace joulediff::lab {

// What docs/recording.md calls the environment.
struct Settings {
  std::string region;  // empty: the outermost nn.Module call
  unsigned steps = 0;
  double trace_seconds = 0;
  std::string passes;
};

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

struct Launch {
  std::vector<std::string> command;
  std::filesystem::path spool;  // an empty folder
  Settings settings;
  bool stop = false;                  // end the program when its processes have made their passes
  std::string facts = "{}";           // JSON: what the journal says of the launch
  Nanoseconds deadline = kNever;      // until then we wait for what records on after the root's end
  Nanoseconds grace = 5'000'000'000;  // from one signal that ends the program to the next
  std::function<Nanoseconds()> replay_budget;  // asked when the replay begins
  std::function<void()> tick = [] {};          // called about ten times a second meanwhile
};

constexpr int kUnknownStatus = -1;

struct Launched {
  pid_t pid = 0;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  Nanoseconds done = 0;      // when the last process that said so had made its passes; 0: none did
  int exit_status = 0;       // as a shell has it: 128 + the signal that ended it; kUnknownStatus
  bool interrupted = false;  // by Ctrl-C or SIGTERM to us
  bool stopped = false;      // by us, when nothing was left to record
  bool terminal = false;     // ended by us: it read from the terminal, which it has not
  bool cut = false;          // we were killed meanwhile: this is what the journal says
  std::vector<std::string> left_behind;  // what had to be ended after the root: "7 (worker --all)"
  std::vector<run::Series> series;
  Diagnostics diagnostics;  // of the meters
  ReplayJudge::Tally replay;
};

// The program runs in a process group of its own, with our stdout and stderr. Its stdin is ours
// unless that is a terminal, which a group in the background could not read; one that opens the
// terminal itself would be held for ever, and is ended.
// Ctrl-C once asks the program to end (SIGINT), twice kills it; SIGTERM, SIGHUP and SIGQUIT ask it
// (SIGTERM) and kill it after the grace. What was recorded is kept. SIGUSR1 and SIGUSR2 go to it.
Result<Launched> launch(const Launch& launch, const Installation& installation,
                        const Meters& meters, const Signals& signals);

// The environment of the program: ours, with docs/recording.md's variables set.
std::vector<std::string> recording_environment(const Launch& launch,
                                               const Installation& installation,
                                               const std::string& socket);

}  // namespace joulediff::lab
