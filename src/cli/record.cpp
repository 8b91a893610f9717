// joulediff record: runs a program with the recorder in it.
#include <CLI/CLI.hpp>

#include "cli/verbs.h"

namespace joulediff::cli {

void add_record(CLI::App& app, Context& context) {
  auto* verb = app.add_subcommand("record", "Record a program, or two of them as a pair");
  verb->callback([&context] {
    context.chosen = []() -> Result<ExitCode> {
      return fail(ExitCode::environment, "record: this build cannot record yet");
    };
  });
}

}  // namespace joulediff::cli
