// joulediff calibrate: what a board and its sensors are like, from a recording of it.
#include "meter/calibrate.h"

#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/format.h"
#include "cli/noise.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "lab/meters.h"
#include "lab/profiles.h"
#include "lab/record.h"
#include "report/prose.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string run, output, python = "python3", device = "cuda";
  std::vector<std::string> noise;
  double minutes = 4;
  bool keep = false, force = false, resume = false, json = false;
};

constexpr std::size_t kLabel = 22;
constexpr double kBesideLoads = 60;  // seconds: a start of Python, torch and the device
constexpr double kWholeLoad = 1.4;   // seconds: shorter, the meter says nothing of it
constexpr const char* kTrace = "calibrate.trace";  // bursts and pulses, as _calibrate.py calls them

std::string seconds(double value) {
  return format(Seconds(value));
}
std::string watts(double value) {
  return format(Watts(value));
}
std::string ratio(double value) {
  return fmt::format("{:.3f}", value);
}

// "100 ms (99.9 ms to 100 ms)", or why it is not known.
template <class Text>
std::string text(const meter::Property& property, Text show) {
  if (!property.identified()) return "not identified: " + property.why;
  if (property.low == property.high) return show(property.value);
  return fmt::format("{} ({} to {})", show(property.value), show(property.low),
                     show(property.high));
}

std::string text(const meter::Alias& alias) {
  std::string out =
      fmt::format("pulses of {} every {}", seconds(alias.length), seconds(alias.period));
  if (alias.in_step) out += ", in step with it";
  if (!alias.misread.identified()) return out + ": " + text(alias.misread, ratio);
  const bool misread = alias.misread.low > 0 || alias.misread.high < 0;
  return out + fmt::format(": {} {} ({} to {})", misread ? "misread by" : "not seen to be misread:",
                           report::with_sign(alias.misread.value),
                           report::with_sign(alias.misread.low),
                           report::with_sign(alias.misread.high));
}

void add(const meter::SensorModel& model, std::string& out) {
  const auto entry = [&out](std::string_view label, std::string_view what) {
    out += report::entry(label, what, kLabel);
  };
  const bool counter = run::is_energy_counter(model.source);
  out +=
      fmt::format("{}: {} readings\n", meter::name_of(model.source), format_count(model.readings));
  entry("period", text(model.period, seconds));
  entry("jitter", text(model.jitter, seconds));
  entry("tick", text(model.tick, [&](double value) {
          return counter ? format(Joules(value)) : format(Watts(value));
        }));
  entry("window", text(model.window, seconds));
  entry("lag", text(model.lag, seconds));
  if (model.explained > 0)
    entry("held against", fmt::format("{}, which explains {:.1f} % of it; {} are left",
                                      model.against, 100 * model.explained, watts(model.residual)));
  entry("looks at", text(model.sampled, format_percent));
  entry("gain", text(model.gain, ratio));
  for (const meter::Alias& alias : model.aliases) entry("aliasing", text(alias));
  if (model.aliases.empty()) entry("aliasing", "not identified: " + model.no_aliases);
}

std::string text(const meter::Profile& profile) {
  std::string out = fmt::format("{}{}, driver {}, {}\n", printable(profile.board),
                                profile.uuid.empty() ? "" : " " + printable(profile.uuid),
                                profile.driver.empty() ? "unknown" : printable(profile.driver),
                                profile.date.empty() ? "date unknown" : profile.date);
  for (const meter::SensorModel& model : profile.sensors) add(model, out);
  out += "floors\n";
  for (const meter::Floor& floor : profile.floors) {
    std::string state = text(floor.watts, watts);
    if (floor.megahertz > 0) state += fmt::format(" at {:.0f} MHz", floor.megahertz);
    if (floor.celsius > 0) state += fmt::format(", {:.0f} degrees", floor.celsius);
    out += report::entry(printable(floor.state), state, kLabel);
  }
  if (profile.floors.empty())
    out += report::entry("", "not identified: no idle or static window was recorded", kLabel);
  out += report::entry("a degree more", text(profile.static_per_celsius, watts), kLabel);
  out += "reference work, above the spinning kernel\n";
  for (const meter::Coefficient& one : profile.coefficients) {
    const auto joules = [&](double value) { return format(Joules(value)) + "/" + one.per; };
    out += report::entry("", printable(one.what) + ": " + text(one.joules, joules), 0);
    for (const auto& [values, cost] : one.by_values)
      out += report::entry(printable("  " + values), text(cost, joules), kLabel);
  }
  if (profile.coefficients.empty())
    out += report::entry("", "not identified: no reference work was recorded", kLabel);
  return out;
}

// The pieces that a recording has already; a load that was cut short is made again.
std::vector<std::string> made_in(const run::Run& run) {
  std::map<std::string, double> seconds;
  bool traced = false;
  for (const run::Block& block : run.blocks) {
    for (const run::Replay& replay : block.replays)
      if (replay.signature.valid())
        seconds[run.signatures[replay.signature.index()].text] +=
            to_seconds(replay.end - replay.begin).value;
    traced = traced || std::ranges::any_of(block.steps, [](const run::Step& step) {
               return step.pass == run::Pass::trace;
             });
  }
  std::vector<std::string> made;
  if (traced) made.emplace_back(kTrace);
  for (const auto& [piece, length] : seconds)
    if (length >= kWholeLoad) made.push_back(piece);
  return made;
}

Status record(const Options& options) {
  lab::RecordOptions record;
  std::vector<std::string> command{options.python,
                                   "-m",
                                   "joulediff._calibrate",
                                   "--device",
                                   options.device,
                                   "--minutes",
                                   fmt::format("{}", options.minutes)};
  if (options.resume && std::filesystem::exists(options.output)) {
    JD_ASSIGN(const run::Run before, run::read_run(options.output));
    for (const std::string& piece : made_in(before))
      command.insert(command.end(), {"--made", piece});
    record.resume = true;
  }
  record.sides.push_back({options.output, std::move(command)});
  record.label = "calibration";
  record.budget = Seconds(60 * options.minutes + kBesideLoads);
  record.force = options.force;
  record.quiet = true;  // the loads say themselves how far they are
  const auto report = lab::record(record);
  if (report) return {};
  // The loads are ours: where they record nothing, the machine lacks what they need.
  Error error = report.error();
  if (error.code == ExitCode::bad_input) error.code = ExitCode::environment;
  return fail(std::move(error).within("recording the calibration loads"));
}

// A board that nothing can be read of cannot be calibrated: that is said before the loads run.
Status look_for_board() {
  const lab::Meters meters = lab::open_meters();
  if (!meters.boards.empty() || !meters.amd_boards.empty()) return {};
  return fail(ExitCode::environment,
              "calibrate: no board whose sensors can be read is here; `joulediff doctor` says what "
              "is missing");
}

Result<ExitCode> calibrate(const Options& options) {
  const int asked = !options.run.empty() + !options.output.empty() + !options.noise.empty();
  if (asked != 1)
    return fail(ExitCode::usage,
                "calibrate: give one of a recorded RUN.jd, -o BOARD.jd to record this machine, and "
                "--noise A.jd B.jd");
  if (options.output.empty() && (options.force || options.resume))
    return fail(ExitCode::usage, "calibrate: --force and --resume are of -o BOARD.jd");
  if (!std::isfinite(options.minutes))
    return fail(ExitCode::usage, "calibrate: --minutes is no number of minutes");
  if (!options.noise.empty()) return measure_noise(options.noise, options.keep, options.json);
  if (!options.output.empty()) {
    JD_TRY(look_for_board());
    JD_TRY(record(options));
  }
  const std::string& path = options.run.empty() ? options.output : options.run;
  JD_ASSIGN(const run::Run run, run::read_run(path));
  const std::vector<meter::Profile> profiles = meter::calibrate(run);
  if (profiles.empty())
    return fail(ExitCode::environment,
                printable(path) +
                    ": it has no series of a board; record it on a machine with a "
                    "GPU whose sensors `joulediff doctor` calls measurable");
  std::string out;
  if (options.json)
    out = meter::to_json(profiles) + "\n";
  else
    for (const meter::Profile& profile : profiles) out += text(profile);
  if (options.keep)
    for (const meter::Profile& profile : profiles) {
      JD_ASSIGN(const std::string where, lab::keep_profile(profile));
      if (!options.json) out += fmt::format("kept as {}\n", printable(where));
    }
  JD_TRY(print(out));
  return ExitCode::fine;
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("calibrate", "Say what a board and its sensors are like");
  verb->footer(
      "joulediff calibrate RUN.jd [--keep]\n"
      "joulediff calibrate -o BOARD.jd [--minutes 4] [--resume] [--keep]\n"
      "joulediff calibrate --noise A.jd B.jd [--keep]");
  verb->add_option("RUN", options->run, "a recorded run");
  verb->add_option("-o,--output", options->output,
                   "record the calibration loads on this machine into that run file first");
  verb->add_option("--python", options->python, "the Python with torch that runs the loads")
      ->capture_default_str();
  verb->add_option("--minutes", options->minutes, "for the loads: shorter ones are less precise")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 600.0));
  verb->add_option("--device", options->device, "cpu: try the loads out where torch has no GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"cuda", "cpu"}));
  verb->add_option("--noise", options->noise,
                   "measure the A/A noise floor: run files of one program, both sides of a pair");
  verb->add_flag("--keep", options->keep,
                 "keep the profile, or the noise floor: recordings of this board will carry it");
  verb->add_flag("--force", options->force, "replace the run file");
  verb->add_flag("--resume", options->resume,
                 "make the loads that the run file does not have yet, and add them to it");
  verb->add_flag("--json", options->json, "print joulediff.calibrate/1 instead of text");
  verb->callback(
      [options, &context] { context.chosen = [options] { return calibrate(*options); }; });
}

}  // namespace joulediff::cli
