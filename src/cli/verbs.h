// The verbs of the command, one .cpp each. A verb's function adds its subcommand and options to the
// app; when the person chose it, its callback stores in `context.chosen` what is to be done.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace joulediff::cli {

struct Context {
  std::vector<std::string> command;          // what followed the first "--"
  std::function<Result<ExitCode>()> chosen;  // an Error ends the command with its line and code
};

void add_record(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_merge(CLI::App& app, Context& context);
void add_facility(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_boundaries(CLI::App& app, Context& context);
void add_frontier(CLI::App& app, Context& context);
void add_mlperf(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);

}  // namespace joulediff::cli
