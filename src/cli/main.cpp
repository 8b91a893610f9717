// The command: one line for each verb, and how every verb ends.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "cli/verbs.h"

namespace {

using namespace joulediff;

int end(const Result<ExitCode>& result) {
  if (result) return static_cast<int>(*result);
  std::fprintf(stderr, "joulediff: %s\n", result.error().message.c_str());
  return static_cast<int>(result.error().code);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Finds the energy that machine-learning software wastes, and says why", "joulediff"};
  app.set_version_flag("--version", "joulediff " JOULEDIFF_VERSION);
  app.require_subcommand(1);

  cli::Context context;
  cli::add_record(app, context);
  cli::add_show(app, context);
  cli::add_compare(app, context);

  // What follows "--" is somebody else's command line: it is not ours to parse.
  int ours = 1;
  while (ours < argc && std::string_view(argv[ours]) != "--") ++ours;
  for (int i = ours + 1; i < argc; ++i) context.command.emplace_back(argv[i]);

  try {
    app.parse(ours, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    app.exit(error);
    return asked ? 0 : static_cast<int>(ExitCode::usage);
  }
  return end(context.chosen());
}
