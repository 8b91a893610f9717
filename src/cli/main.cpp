// The command: one line for each verb, and how every verb ends.
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace {

using namespace joulediff;

int end(const Result<ExitCode>& result) {
  if (result) return static_cast<int>(*result);
  cli::complain(result.error().message);
  return static_cast<int>(result.error().code);
}

tl::unexpected<Error> too_large() {
  return fail(ExitCode::environment,
              "there is not enough memory for this: give it less, or a machine with more");
}

// What --help or --version print, or what is wrong with the arguments.
Result<ExitCode> answer(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& words, bool has_command) {
  if (error.get_exit_code() == 0) {
    const bool help = dynamic_cast<const CLI::CallForVersion*>(&error) == nullptr;
    JD_TRY(cli::print(help ? app.help() : std::string(error.what()) + "\n"));
    return ExitCode::fine;
  }
  std::string remedy = "joulediff --help says what it takes";
  for (const std::string& word : words)
    if (app.get_subcommands().empty() && !word.starts_with('-'))
      return fail(ExitCode::usage, "there is no verb " + word + "; " + remedy);
  for (const CLI::App* verb : app.get_subcommands()) {
    remedy = "joulediff " + verb->get_name() + " --help says what it takes";
    const bool stray = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    if (stray && verb->get_name() == "record" && !has_command)
      remedy = "the program's command follows --, as in -- python train.py";
  }
  return fail(ExitCode::usage, std::string(error.what()) + "; " + remedy);
}

}  // namespace

int main(int argc, char** argv) {
  cli::guard_standard_streams();
  CLI::App app{"Finds the energy that machine-learning software wastes, and says why", "joulediff"};
  app.set_version_flag("--version", "joulediff " JOULEDIFF_VERSION);
  app.require_subcommand(1);

  cli::Context context;
  cli::add_record(app, context);
  cli::add_show(app, context);
  cli::add_compare(app, context);
  cli::add_merge(app, context);
  cli::add_facility(app, context);
  cli::add_check(app, context);
  cli::add_boundaries(app, context);
  cli::add_frontier(app, context);
  cli::add_mlperf(app, context);
  cli::add_calibrate(app, context);
  cli::add_doctor(app, context);
  cli::add_simulate(app, context);

  // What follows "--" is somebody else's command line: it is not ours to parse.
  int ours = 1;
  while (ours < argc && std::string_view(argv[ours]) != "--") ++ours;
  for (int i = ours + 1; i < argc; ++i) context.command.emplace_back(argv[i]);

  try {
    app.parse(ours, argv);
  } catch (const CLI::ParseError& error) {
    return end(answer(app, error, {argv + 1, argv + ours}, ours < argc));
  }
  try {
    return end(context.chosen());
  } catch (const std::bad_alloc&) {
    return end(too_large());
  } catch (const std::length_error&) {
    return end(too_large());
  }
}
