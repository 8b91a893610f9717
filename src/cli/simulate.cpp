// joulediff simulate: what meters would have said of a program whose truth is known.
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "base/format.h"
#include "base/text_table.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "run/run_file.h"
#include "simulate/boards.h"
#include "simulate/program_file.h"
#include "simulate/readings.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string program, period, duty;
  std::optional<std::string> board, output, truth;
  std::optional<double> watts, seconds;
  std::uint64_t seed = 1;
  bool force = false;
  bool json = false;
};

// "20ms" is 0.02, "50%" is 0.5: a number and one of the units.
Result<double> amount(const std::string& option, const std::string& text,
                      std::initializer_list<std::pair<std::string_view, double>> units) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string known;
  for (const auto& [unit, factor] : units) {
    if (error == std::errc() && std::isfinite(value) && value >= 0 &&
        std::string_view(rest, end) == unit)
      return value * factor;
    known += (known.empty() ? "" : ", ") + std::string(unit.empty() ? "no unit" : unit);
  }
  return fail(ExitCode::usage, fmt::format("simulate: {} {} is not a number with one of: {}",
                                           option, printable(text), known));
}

// A program that the options describe: a square wave where a period is given.
Result<simulate::Simulation> built_in(const Options& options) {
  simulate::Simulation result;
  result.board_key = options.board.value_or("h200");
  const simulate::NamedBoard* board = simulate::find_board(result.board_key);
  if (!board)
    return fail(ExitCode::usage, fmt::format("simulate: there is no board {}; there are {}",
                                             printable(result.board_key), simulate::board_keys()));
  result.source = board->source;
  result.board = board->board;
  result.sensors = board->sensors;
  constexpr double kShare = 0.8;  // of what the limit leaves
  const double watts =
      options.watts.value_or(kShare * (board->board.cap_watts - board->board.static_watts));
  const double seconds = options.seconds.value_or(5);
  if (options.period.empty()) {
    if (!options.duty.empty())
      return fail(ExitCode::usage, "simulate: --duty is of a --period, as in --period 20ms");
    result.program = simulate::transformer(watts, seconds);
  } else {
    JD_ASSIGN(const double period,
              amount("--period", options.period, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}));
    JD_ASSIGN(const double duty, amount("--duty", options.duty.empty() ? "50%" : options.duty,
                                        {{"%", 0.01}, {"", 1}}));
    if (!(period >= 1e-5 && period <= 10))
      return fail(ExitCode::usage, "simulate: --period is not between 10us and 10s");
    if (!(duty > 0 && duty <= 1))
      return fail(ExitCode::usage, "simulate: --duty is not above 0 % and at most 100 %");
    result.program = simulate::square_wave(period, duty, watts, seconds);
  }
  if (Status sensible = simulate::check(result.program); !sensible)
    return fail(ExitCode::usage, "simulate: " + sensible.error().message);
  return result;
}

Result<simulate::Simulation> simulation(const Options& options) {
  if (options.program.empty()) return built_in(options);
  for (const auto& [given, name] :
       {std::pair(options.board.has_value(), "--board (its file says `preset`)"),
        {!options.period.empty(), "--period"},
        {!options.duty.empty(), "--duty"},
        {options.watts.has_value(), "--watts"},
        {options.seconds.has_value(), "--seconds"}})
    if (given)
      return fail(ExitCode::usage,
                  fmt::format("simulate: {} is for the built-in programs; a program's file says "
                              "it itself",
                              name));
  return simulate::read_program(options.program);
}

std::string signed_percent(double ratio) {
  return fmt::format("{:+.1f} %", 100 * ratio);
}

std::string report(const simulate::Recording& recording, const simulate::Simulation& what) {
  const simulate::Truth& truth = recording.truth;
  const simulate::WindowTruth& trace = truth.windows.front();
  const Seconds length = to_seconds(trace.end - trace.begin);
  std::string out =
      fmt::format("{} on {} (simulated)\n{}, {} steps of {}: {}, {}\n\n",
                  printable(recording.run.manifest.label), printable(what.board.name),
                  format(length), format_count(truth.steps), format(Seconds(truth.step)),
                  format(Joules(trace.joules)), format(Joules(trace.joules) / length));

  TextTable meters(
      {{"what a meter says of it"}, {"energy", Align::right}, {"error", Align::right}});
  for (const simulate::Reading& reading : simulate::readings(recording))
    meters.add({reading.meter, format(Joules(reading.joules)), signed_percent(reading.error)});
  if (meters.rows() == 0)
    out += "no meter says anything of it\n";
  else
    out += meters.text();

  TextTable lines({{"where it went"}, {"a step", Align::right}, {"share", Align::right}});
  const auto add = [&](std::string name, double joules) {
    lines.add({std::move(name), format(Joules(joules)), format_percent(joules / truth.total)});
  };
  for (const simulate::OperatorTruth& op : truth.operators)
    add(fmt::format("{} x {}", op.name, format_count(static_cast<std::uint64_t>(op.calls))),
        op.dynamic);
  constexpr double kLeast = 1e-5;  // less is rounding to whole nanoseconds
  for (std::size_t i = 1; i < simulate::kLines; ++i)
    if (std::abs(truth.lines[i]) > kLeast * truth.total)
      add(std::string(simulate::name(static_cast<simulate::Line>(i))), truth.lines[i]);
  return out + "\n" + lines.text() + "\nfigures: " + what.source + "\n";
}

Result<ExitCode> simulate_program(const Options& options) {
  Outputs outputs{"simulate", {}, options.force};
  for (const auto& path : {options.output, options.truth})
    if (path) outputs.files.push_back(*path);
  std::vector<std::string> inputs;
  if (!options.program.empty()) inputs.push_back(options.program);
  JD_TRY(check_outputs(outputs, inputs));
  JD_ASSIGN(const simulate::Simulation what, simulation(options));
  const simulate::Recording recording =
      simulate::record(what.program, what.board, what.sensors, what.passes, options.seed);
  if (options.output) JD_TRY(run::write_run(recording.run, *options.output));
  if (options.truth)
    JD_TRY(write_file_atomically(*options.truth, simulate::truth_json(recording.truth)));
  JD_TRY(print(options.json
                   ? simulate::simulation_json(recording, what.board_key, what.source, options.seed)
                   : report(recording, what)));
  return ExitCode::fine;
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("simulate", "Say what meters would see of a known program");
  verb->add_option("PROGRAM", options->program,
                   "a program, board and sensors as TOML (docs/simulate.md); none: a transformer");
  verb->add_option("--board", options->board, "one of " + simulate::board_keys());
  verb->add_option("--period", options->period, "a square wave instead, as in 20ms");
  verb->add_option("--duty", options->duty, "of the period that is busy, as in 50%");
  verb->add_option("--watts", options->watts, "of the work, above static power")
      ->check(CLI::Range(0.0, 1e5));
  verb->add_option("--seconds", options->seconds, "how long the program runs (5)")
      ->check(CLI::Range(0.1, 600.0));
  verb->add_option("--seed", options->seed, "of all that is left to chance")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  verb->add_option("-o,--output", options->output, "write the run file");
  verb->add_option("--truth", options->truth, "write the truth, joulediff.truth/1");
  verb->add_flag("--force", options->force, "replace existing files");
  verb->add_flag("--json", options->json, "print joulediff.simulate/1 instead of text");
  verb->callback(
      [options, &context] { context.chosen = [options] { return simulate_program(*options); }; });
}

}  // namespace joulediff::cli
