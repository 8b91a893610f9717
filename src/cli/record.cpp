// joulediff record: runs a program with the recorder in it, or two of them as a pair.
#include "lab/record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text_table.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "report/facts.h"
#include "report/prose.h"

namespace joulediff::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string output;
  std::vector<std::string> pair, meters;
  std::string meter_boundary, recover;
  std::string region, label;
  std::optional<std::string> work;
  std::string passes = "values,order,trace,replay";
  std::string budget = "3m";
  unsigned steps = 10;
  double trace_seconds = 3;
  unsigned blocks = 0;  // 0: 4 for a pair, else 2
  bool stop = false, keep_spool = false, force = false, quiet = false, json = false;
};

tl::unexpected<Error> usage(std::string message) {
  return fail(ExitCode::usage, "record: " + std::move(message));
}

// "90s", "3m", "1h", "45".
std::optional<Seconds> duration(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit == "m") value *= 60;
  if (unit == "h") value *= 3600;
  constexpr double kLongest = 1e8;  // seconds; as nanoseconds it fits
  const bool known = unit.empty() || unit == "s" || unit == "m" || unit == "h";
  if (!known || !(value > 0 && value <= kLongest)) return std::nullopt;
  return Seconds(value);
}

// "module.sub:Class.method".
bool is_region(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto is_dotted = [](const std::string& names) {
    const std::vector<std::string> parts = CLI::detail::split(names, '.');
    return !names.empty() && !names.ends_with('.') &&
           std::ranges::all_of(parts, [](const std::string& part) {
             return !part.empty() && part.find_first_of(": \t/\\()[]") == std::string::npos;
           });
  };
  return colon != std::string::npos && is_dotted(text.substr(0, colon)) &&
         is_dotted(text.substr(colon + 1));
}

// "token:8192".
std::optional<run::Work> work_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == 0 || colon == std::string::npos) return std::nullopt;
  run::Work work{text.substr(0, colon), 0};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, work.per_step);
  if (error != std::errc() || rest != end || !(work.per_step > 0 && std::isfinite(work.per_step)))
    return std::nullopt;
  return work;
}

bool known_passes(const std::string& text) {
  static const std::set<std::string> kPasses{"values", "order", "trace", "replay"};
  const std::vector<std::string> names = CLI::detail::split(text, ',');
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return kPasses.contains(name); });
}

Result<lab::RecordOptions> checked(const Options& given, const std::vector<std::string>& command) {
  lab::RecordOptions options;
  const bool pair = !given.pair.empty();
  if (pair == !given.output.empty())
    return usage("give either -o A.jd for one program or --pair A.jd B.jd for two");
  if (command.empty())
    return usage("no program: write its command after --, as in -- python train.py");
  if (pair) {
    const auto middle = std::find(command.begin(), command.end(), "---");
    if (middle == command.begin() || middle == command.end() || middle + 1 == command.end())
      return usage("--pair needs two commands: -- CMD_A --- CMD_B");
    options.sides.push_back({given.pair[0], {command.begin(), middle}});
    options.sides.push_back({given.pair[1], {middle + 1, command.end()}});
    if (given.pair[0].empty() || given.pair[1].empty())
      return usage("--pair needs the names of two files");
    if (same_file(given.pair[0], given.pair[1]))
      return usage("the two files of a pair are the same file");
  } else {
    options.sides.push_back({given.output, command});
  }
  for (const lab::RecordSide& side : options.sides)
    if (side.command.front().empty())
      return usage("the name of the program after -- is empty: write its command there");
  options.blocks = given.blocks != 0 ? given.blocks : pair ? 4 : 2;
  if (pair && options.blocks % 2 != 0)
    return usage("--blocks of a pair is even, so that both sides have as many");
  const auto budget = duration(given.budget);
  if (!budget) return usage("--budget " + given.budget + " is no duration: write 90s, 3m or 1h");
  options.budget = *budget;
  if (given.work) {
    options.work = work_of(*given.work);
    if (!options.work)
      return usage("--work " + *given.work + " is not unit:count, as in --work token:8192");
  }
  constexpr double kDay = 86400;
  if (!(given.trace_seconds >= 0 && given.trace_seconds <= kDay))
    return usage("--trace-seconds is a number of seconds, of a day at most");
  if (!known_passes(given.passes))
    return usage("--passes " + given.passes + " is not a list out of values,order,trace,replay");
  if (!given.region.empty() && !is_region(given.region))
    return usage("--region " + given.region +
                 " is not module:qualname, as in --region model:GPT.forward");
  options.settings = {given.region, given.steps, given.trace_seconds, given.passes};
  options.label = given.label;
  options.stop = given.stop;
  for (const std::string& meter : given.meters)
    if (meter.find_first_not_of(" \t") == std::string::npos)
      return usage("--meter needs a command that prints readings, or the name of a CSV file");
  if (!given.meter_boundary.empty() && given.meters.empty())
    return usage("--meter-boundary says what a --meter sees; give that too");
  // A program that is read, or a meter's file, is no place for the run.
  Outputs outputs{"record", {}, given.force};
  for (const lab::RecordSide& side : options.sides) outputs.files.push_back(side.output);
  JD_TRY(check_apart(outputs, command));
  JD_TRY(check_apart(outputs, given.meters));
  options.meters = given.meters;
  options.meter_boundary = given.meter_boundary;
  options.keep_spool = given.keep_spool;
  options.force = given.force;
  options.quiet = given.quiet || given.json;
  return options;
}

Result<lab::RecordReport> recovered(const Options& given, const std::vector<std::string>& command) {
  if (given.output.empty() || !command.empty())
    return usage("--recover takes the folder that a recording left, and -o A.jd, and no program");
  return lab::recover({given.recover, given.output, given.keep_spool, given.force});
}

Result<lab::RecordReport> recorded(const Options& given, const std::vector<std::string>& command) {
  JD_ASSIGN(const lab::RecordOptions options, checked(given, command));
  return lab::record(options);
}

std::size_t steps_of(const run::Run& run, run::Pass pass) {
  std::size_t count = 0;
  for (const run::Block& block : run.blocks)
    count += static_cast<std::size_t>(
        std::count_if(block.steps.begin(), block.steps.end(),
                      [pass](const run::Step& step) { return step.pass == pass; }));
  return count;
}

ordered_json as_json(const lab::RecordReport& report) {
  ordered_json all{{"schema", "joulediff.record/1"},
                   {"seconds", report.elapsed.value},
                   {"interrupted", report.interrupted},
                   {"recorded", ordered_json::array()}};
  for (const lab::RecordedSide& side : report.sides) {
    const run::Run& run = side.run;
    ordered_json one{
        {"file", side.output},
        {"label", run.manifest.label},
        {"device", run.manifest.device},
        {"framework", run.manifest.framework},
        {"pair", run.manifest.pair},
        {"work", {{"unit", run.manifest.work.unit}, {"per_step", run.manifest.work.per_step}}},
        {"blocks", run.blocks.size()},
        {"operators", run.operators.size()},
        {"tensors", run.tensors.size()},
        {"steps",
         {{"values", steps_of(run, run::Pass::values)},
          {"order", steps_of(run, run::Pass::order)},
          {"trace", steps_of(run, run::Pass::trace)}}},
        {"replay",
         {{"planned", side.replay.planned},
          {"measured", side.replay.measured},
          {"cut", side.replay.cut},
          {"paced", side.replay.paced},
          {"seconds", to_seconds(side.replay.spent).value}}},
        {"spools", side.spools},
        {"diagnostics", ordered_json::array()}};
    for (const Diagnostic& d : run.diagnostics)
      one["diagnostics"].push_back(
          {{"severity", report::name(d.severity)},
           {"rule", d.rule},
           {"message", d.message},
           {"remedy", d.remedy.empty() ? ordered_json() : ordered_json(d.remedy)},
           {"count", d.count}});
    all["recorded"].push_back(std::move(one));
  }
  return all;
}

// Text of the program's that is not UTF-8 is replaced, not an exception.
std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string as_text(const lab::RecordReport& report) {
  std::string out;
  const auto add = [&out]<class... T>(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(out), format, std::forward<T>(values)...);
  };
  for (const lab::RecordedSide& side : report.sides) {
    const run::Run& run = side.run;
    const std::string& device = run.manifest.device;
    out +=
        report::entry("",
                      fmt::format("{}: {} on {}, {} {}", side.output, run.manifest.label,
                                  device.empty() ? "an unknown device" : device, run.blocks.size(),
                                  run.blocks.size() == 1 ? "process" : "processes"),
                      0);
    add("  {} operators, {} tensors; {} steps traced; {} of {} replays to 2 %, {} cut short\n",
        format_count(run.operators.size()), format_count(run.tensors.size()),
        format_count(steps_of(run, run::Pass::trace)), side.replay.measured, side.replay.planned,
        side.replay.cut);
    for (const Diagnostic& d : run.diagnostics)
      out += report::entry(
          report::name(d.severity),
          fmt::format("{}{} [{}]", told(d),
                      d.count > 1 ? fmt::format(" ({} times)", format_count(d.count)) : "",
                      d.rule));
    for (const std::string& spool : side.spools) out += report::entry("kept", spool);
  }
  add("recorded in {}{}\n", format(report.elapsed), report.interrupted ? ", interrupted" : "");
  return out;
}

}  // namespace

void add_record(CLI::App& app, Context& context) {
  auto given = std::make_shared<Options>();
  auto* verb = app.add_subcommand("record", "Record a program, or two of them as a pair");
  verb->footer(
      "joulediff record -o A.jd [options] -- CMD...\n"
      "joulediff record --pair A.jd B.jd [options] -- CMD_A... --- CMD_B...\n"
      "joulediff record --recover A.jd.PID.spool -o A.jd");
  verb->add_option("-o,--output", given->output, "the run file to write");
  verb->add_option("--pair", given->pair, "the two run files of a pair, recorded in turns")
      ->expected(2);
  verb->add_option("--region", given->region,
                   "what a step is, as module:qualname (default: the outermost nn.Module call; "
                   "in JAX the outermost jitted function, in ONNX Runtime a session's run)");
  verb->add_option("--steps", given->steps, "steps of the trace, at least")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1'000'000'000U));
  verb->add_option("--trace-seconds", given->trace_seconds, "seconds of the trace, at least")
      ->capture_default_str();
  verb->add_option("--label", given->label, "what to call the program");
  verb->add_option("--work", given->work, "what a step does, as unit:count");
  verb->add_option("--meter", given->meters,
                   "another meter, repeatable: a command that prints lines of `unix_seconds watts "
                   "[channel]`, or a FILE.csv that is there after the run")
      ->allow_extra_args(false);
  verb->add_option("--meter-boundary", given->meter_boundary, "what the other meters see")
      ->check(CLI::IsMember({"rail", "board", "host", "node", "rack", "facility"}));
  verb->add_option("--budget", given->budget, "bound of the whole: 90s, 3m, 1h")
      ->capture_default_str();
  verb->add_option("--blocks", given->blocks,
                   "processes in all (default: 4 for a pair, else 2); a spread needs 2 a side")
      ->check(CLI::Range(1U, 1000U));
  verb->add_option("--passes", given->passes, "passes to make")->capture_default_str();
  verb->add_flag("--stop", given->stop,
                 "end the program when its passes are made: for servers, which never end");
  verb->add_option("--recover", given->recover,
                   "make the run of what a recording left that was killed: its folder")
      ->excludes("--pair");
  verb->add_flag("--keep-spool", given->keep_spool, "keep what the recorder wrote");
  verb->add_flag("--force", given->force, "replace existing run files");
  verb->add_flag("--quiet", given->quiet, "neither progress nor summary");
  verb->add_flag("--json", given->json, "the summary as JSON, as the last line of stdout");
  verb->callback([given, &context] {
    context.chosen = [given, &context]() -> Result<ExitCode> {
      JD_ASSIGN(const lab::RecordReport report, given->recover.empty()
                                                    ? recorded(*given, context.command)
                                                    : recovered(*given, context.command));
      if (given->json) JD_TRY(print(dumped(as_json(report)) + "\n"));
      if (!given->json && !given->quiet) JD_TRY(print(as_text(report)));
      return ExitCode::fine;
    };
  });
}

}  // namespace joulediff::cli
