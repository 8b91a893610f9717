// A spool as its records say it, typed: one process's recording before it becomes a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "run/model.h"
#include "spool/spool.h"

namespace joulediff::lab {

struct SpoolFact {
  std::string topic;
  std::string json;
};

struct SpoolTensor {
  std::uint64_t id = 0;
  run::Tensor tensor;
};

struct SpoolOperator {
  std::uint32_t index = 0;
  std::string name;
  std::vector<std::uint64_t> inputs;
  std::vector<std::uint64_t> outputs;
  std::string json;
};

struct SpoolOperatorName {
  std::uint32_t step = 0;
  std::uint32_t index = 0;
  std::string name;
};

struct SpoolReplay {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  std::uint64_t count = 0;
  std::string signature;
};

struct SpoolDevice {
  std::uint32_t ordinal = 0;  // as the process's kernels name it
  run::Device device;
};

// Code that was mapped into the process.
struct SpoolModule {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;  // of `begin` in the file
  std::string path;
  std::string build_id;
};

struct SpoolContents {
  std::uint32_t pid = 0;
  std::vector<SpoolFact> facts;
  std::vector<spool::Step> steps;
  std::vector<SpoolTensor> tensors;
  std::vector<SpoolOperator> operators;
  std::vector<SpoolOperatorName> operator_names;
  std::vector<spool::OpTime> operator_times;
  std::map<std::uint32_t, std::string> kernel_names;
  std::vector<spool::Kernel> kernels;
  std::vector<spool::Correlation> correlations;
  std::vector<SpoolReplay> replays;
  std::map<std::uint32_t, std::string> inputs;  // by id
  std::vector<SpoolDevice> devices;
  std::vector<spool::LaunchStack> launch_stacks;
  std::map<std::uint32_t, std::vector<std::uint64_t>> native_stacks;  // by id, innermost first
  std::vector<SpoolModule> modules;
  std::vector<spool::Synchronisation> synchronisations;
  std::vector<spool::Clock> clocks;
  std::vector<run::Series> series;    // of the launcher's own spool
  std::vector<std::string> launches;  // likewise: JSON
  std::uint64_t dropped_kernels = 0;
  std::uint64_t impossible_calls = 0;  // of operators beyond those that a step can have: left out
  bool torn = false;                   // ended in the middle of a record
  std::uint64_t damaged_records = 0;   // whole, but not of the form that their type has
};

// `bytes` of the spool of process `pid`; an error where they are not a spool at all.
Result<SpoolContents> parse_spool(std::string_view bytes, std::uint32_t pid);

// Every PID.spool in the folder, by pid; not the launcher's own. Files that are no spools are left
// out and named in `strangers`.
std::vector<SpoolContents> read_spools(const std::string& folder,
                                       std::vector<std::string>& strangers);

}  // namespace joulediff::lab
