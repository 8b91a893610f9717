#include "lab/imperfections.h"

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/format.h"
#include "lab/diagnostics.h"
#include "lab/pack_program.h"
#include "run/names.h"

namespace joulediff::lab {
namespace {

// How far the processes came.
std::string how_far(const std::vector<SpoolContents>& spools) {
  const spool::Step* last = nullptr;
  for (const SpoolContents& each : spools)
    for (const spool::Step& step : each.steps)
      if (step.pass < run::kNames<run::Pass>.size() && (!last || step.end_ns > last->end_ns))
        last = &step;
  if (!last) return "before its first step";
  return fmt::format("after step {} ({})", last->index, run::kNames<run::Pass>[last->pass]);
}

constexpr const char* kTerminal =
    "the program read from the terminal, which it has not while it is recorded, and was ended: "
    "give "
    "it what it asks for by an option or a file";

}  // namespace

Error nothing_recorded(const Recorded& recorded) {
  if (recorded.launched.cut)
    return {ExitCode::bad_input, "the recording ended before a step was recorded: record it again"};
  if (recorded.launched.terminal)
    return {ExitCode::bad_input, std::string("before a step was recorded, ") + kTerminal};
  const int status = recorded.launched.exit_status;
  const std::string ended = recorded.launched.interrupted ? "the program was interrupted"
                            : status != 0
                                ? "the program ended with status " + std::to_string(status)
                                : "";
  if (!ended.empty())
    return {ExitCode::bad_input, ended +
                                     " before a step was recorded: run it without joulediff "
                                     "first, or record fewer --steps"};
  if (recorded.spools.empty() && !recorded.strangers.empty())
    return {ExitCode::bad_input, "the program left no spool that can be read (" +
                                     recorded.strangers.front() + "): record it again"};
  if (recorded.spools.empty())
    return {ExitCode::environment,
            "the program never loaded the recorder: it is no Python program with PyTorch that our "
            "plug-ins watch (python -S and -I switch them off), nor does it call "
            "joulediff/record.h"};
  if (!recorded.region.empty())
    return {ExitCode::bad_input,
            "the program made no step, as nothing that it called is --region " +
                printable(recorded.region) + ": check its module and name, or leave --region out"};
  return {ExitCode::bad_input,
          "the program made no step that could be recorded: name what a step is with --region "
          "module:qualname, or call joulediff.torch.steps(n) in its loop"};
}

void tell_imperfections(run::Run& run, const Recorded& recorded) {
  for (const SpoolContents& each : recorded.spools) {
    take_diagnostics(run, each);
    if (each.torn)
      diagnose(run, Severity::warning, "record.torn_spool",
               "a process's recording ends in a torn record; what lies before it is kept");
    if (each.damaged_records > 0)
      diagnose(run, Severity::warning, "record.damaged_records",
               "records that have not the form of their type are left out", each.damaged_records);
  }
  for (const std::string& stranger : recorded.strangers)
    diagnose(run, Severity::warning, "record.bad_spool", "unreadable spool " + stranger);
  const Launched& launched = recorded.launched;
  const std::string far = how_far(recorded.spools);
  if (launched.cut)
    diagnose(
        run, Severity::warning, "record.cut",
        fmt::format("the recording was killed, or its file could not be written on, {} into its "
                    "process {}, {}; what was recorded until then is kept",
                    format(to_seconds(launched.end - launched.begin)), recorded.order + 1, far));
  else if (launched.interrupted)
    diagnose(run, Severity::warning, "record.interrupted",
             fmt::format("the program was interrupted {}; what it had recorded is kept", far));
  else if (launched.terminal)
    diagnose(run, Severity::warning, "record.terminal", kTerminal);
  else if (launched.stopped)
    diagnose(run, Severity::note, "record.stopped",
             fmt::format("the program was ended {}, when nothing of it was left to record, as "
                         "--stop asks",
                         far));
  else if (launched.exit_status != 0)
    diagnose(run, Severity::warning, "record.program_failed",
             fmt::format("the program ended with status {} {}; what it had recorded is kept",
                         launched.exit_status, far));
  if (!launched.left_behind.empty())
    diagnose(run, Severity::warning, "record.left_behind",
             fmt::format("processes that stayed when the program had ended were ended: {}",
                         fmt::join(launched.left_behind, ", ")),
             launched.left_behind.size());
}

}  // namespace joulediff::lab
