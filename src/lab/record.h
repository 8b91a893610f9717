// Recording: one program, or two as a pair in ABBA blocks of fresh processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "lab/launcher.h"
#include "run/model.h"

namespace joulediff::lab {

struct RecordSide {
  std::string output;  // the .jd file
  std::vector<std::string> command;
};

struct RecordOptions {
  std::vector<RecordSide> sides;  // one, or two of a pair
  Settings settings;
  std::string label;                // empty: the script's name
  std::optional<run::Work> work;    // what a step does; empty: what the program says
  Seconds budget;                   // for the whole
  std::vector<std::string> meters;  // outside ones: commands, and CSV files
  std::string meter_boundary;       // what they see: board, host, node, ...; empty: not stated
  unsigned blocks = 1;              // over both sides
  bool stop = false;                // end the programs when their passes are made
  bool keep_spool = false;
  bool force = false;   // replace output files
  bool resume = false;  // add to the output files that are there
  bool quiet = false;   // no progress
};

struct RecordedSide {
  std::string output;
  run::Run run;
  std::vector<std::string> spools;  // kept folders
  ReplayJudge::Tally replay;        // over its blocks
};

struct RecordReport {
  std::vector<RecordedSide> sides;
  Seconds elapsed;
  bool interrupted = false;
};

// Writes the output files. Nothing else is left behind, but for the folder of a file that could not
// be written. After an interruption, or a
// trouble with a later block, what was recorded until then is written.
Result<RecordReport> record(const RecordOptions& options);

struct RecoverOptions {
  std::string folder;  // that a recording left which was killed, or could not write its run
  std::string output;
  bool keep_spool = false;
  bool force = false;
};

// Writes the run of what was recorded until then.
Result<RecordReport> recover(const RecoverOptions& options);

// The order of the blocks: A B B A A B B A ... of `sides` sides.
std::vector<std::size_t> block_order(std::size_t sides, unsigned blocks);

// How long the replay of a block may last: what is left of the budget after the costs, apart from
// replay, of the blocks that are still to come, shared evenly among this block and those.
Nanoseconds replay_share(Nanoseconds left, const std::vector<Nanoseconds>& costs_to_come);

}  // namespace joulediff::lab
