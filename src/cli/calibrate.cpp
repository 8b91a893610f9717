// joulediff calibrate: what a board and its sensors are like, from a recording of it.
#include "meter/calibrate.h"

#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/format.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "lab/profiles.h"
#include "lab/record.h"
#include "report/prose.h"
#include "run/run_file.h"

namespace joulediff::cli {
namespace {

struct Options {
  std::string run, output, python = "python3";
  bool keep = false, force = false, json = false;
};

constexpr std::size_t kLabel = 22;

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

Status record(const Options& options) {
  lab::RecordOptions record;
  record.sides.push_back({options.output, {options.python, "-m", "joulediff._calibrate"}});
  record.label = "calibration";
  record.budget = Seconds(600);
  record.force = options.force;
  record.quiet = options.json;
  const auto report = lab::record(record);
  if (report) return {};
  // The loads are ours: where they record nothing, the machine lacks what they need.
  Error error = report.error();
  if (error.code == ExitCode::bad_input) error.code = ExitCode::environment;
  return fail(std::move(error).within("recording the calibration loads"));
}

Result<ExitCode> calibrate(const Options& options) {
  if (options.run.empty() == options.output.empty())
    return fail(ExitCode::usage,
                "calibrate: give either a recorded RUN.jd, or -o BOARD.jd to record this machine");
  if (!options.output.empty()) JD_TRY(record(options));
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
      "joulediff calibrate -o BOARD.jd [--keep]");
  verb->add_option("RUN", options->run, "a recorded run");
  verb->add_option("-o,--output", options->output,
                   "record the calibration loads on this machine into that run file first");
  verb->add_option("--python", options->python, "the Python with torch that runs the loads")
      ->capture_default_str();
  verb->add_flag("--keep", options->keep,
                 "keep the profile: recordings of this board will carry it");
  verb->add_flag("--force", options->force, "replace the run file");
  verb->add_flag("--json", options->json, "print joulediff.calibrate/1 instead of text");
  verb->callback(
      [options, &context] { context.chosen = [options] { return calibrate(*options); }; });
}

}  // namespace joulediff::cli
