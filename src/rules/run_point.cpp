#include "rules/run_point.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "meter/meter.h"

namespace joulediff::rules {
namespace {

struct Span {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
};

std::optional<Span> trace_of(const run::Block& block) {
  std::optional<Span> span;
  for (const run::Step& step : block.steps) {
    if (step.pass != run::Pass::trace) continue;
    if (!span) span = Span{step.begin, step.end};
    span->end = std::max(span->end, step.end);
  }
  return span;
}

// Values of a sensor in the trace of the first block.
std::vector<std::int64_t> values(const run::Run& run, run::Source source) {
  std::vector<std::int64_t> list;
  if (run.blocks.empty()) return list;
  const auto span = trace_of(run.blocks.front());
  if (!span) return list;
  for (const run::Series& series : run.blocks.front().series)
    if (series.source == source)
      for (std::size_t i = 0; i < series.time.size(); ++i)
        if (series.time[i] >= span->begin && series.time[i] <= span->end)
          list.push_back(series.value[i]);
  return list;
}

std::string fact(const run::Run& run, const char* key) {
  const auto found = run.manifest.facts.find(key);
  return found == run.manifest.facts.end() ? std::string() : found->second;
}

// What only whoever made the program knows (quality, load, data) stands in the manifest under the
// point's own names: "quality.value" = "44.4". What is measured is not for the manifest to say, and
// what cannot be read stays unknown.
class Stated {
 public:
  explicit Stated(const run::Manifest& manifest) : manifest_(manifest) {}

  template <class T>
  void operator()(std::string_view section, std::string_view key, T& value) const {
    constexpr std::array kMeasured{"", "energy", "window", "sampling", "clock", "meter", "repeats"};
    if (std::ranges::find(kMeasured, section) != kMeasured.end()) return;
    const auto found = manifest_.facts.find(fmt::format("{}.{}", section, key));
    if (found != manifest_.facts.end()) read(found->second, value);
  }

 private:
  static void read(const std::string& text, std::string& value) {
    if (value.empty()) value = text;
  }
  static void read(const std::string& text, run::Fact& value) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (!value && error == std::errc() && at == end && std::isfinite(number)) value = number;
  }
  static void read(const std::string& text, run::Flag& value) {
    if (!value && (text == "true" || text == "false")) value = text == "true";
  }
  static void read(std::string_view text, std::vector<std::string>& value) {  // comma between
    if (!value.empty()) return;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      if (end > 0) value.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  static void read(const std::string&, std::vector<double>&) {}  // repeats alone has such

  const run::Manifest& manifest_;
};

void tell_sensors(const run::Run& run, run::Point& p) {
  if (const auto limits = values(run, run::Source::nvml_power_limit); !limits.empty())
    p.control.power_cap = fmt::format("{} W", limits.front() / 1000);
  // Blocks of a pair take turns: each side begins where the other has left the device.
  if (!run.manifest.pair.empty()) return;
  if (const auto degrees = values(run, run::Source::nvml_temperature); !degrees.empty())
    p.thermal.start_celsius = static_cast<double>(degrees.front());
}

void tell_meter(const run::Run& run, run::Point& p) {
  const auto meter = meter::choose_meter(run);
  if (!meter) return;
  p.boundary.kind = name(meter->boundary);
  p.energy.standing = name(meter->standing);
  p.energy.integrator = run::is_energy_counter(meter->source) ? "counter" : "trapezoid";
  p.meter.name = meter->name;
  p.meter.serial = run.manifest.device_uuid;
  // A model's error is the same for every program on one machine: no meter is at fault.
  if (meter->standing == Standing::measured) p.meter.uncertainty = meter->systematic;
  p.meter.telemetry = true;
  p.meter.range = "fixed";
}

}  // namespace

run::Point point_of(const run::Run& run) {
  const run::Manifest& m = run.manifest;
  run::Point p;
  p.label = m.label;
  p.kind = "run";  // of which the windows have intervals of their own: no rule on durations
  p.work.unit = m.work.unit;
  p.quality.metric = fact(run, "quality");
  p.scenario.arrival = fact(run, "scenario");
  p.window.markers = true;
  p.window.scored = "window";
  p.phases.load = p.phases.compile = p.phases.warmup = false;
  p.idle.treatment = "include";
  p.hardware.device = m.device;
  p.software.driver = fact(run, "driver");
  p.software.framework = m.framework;
  p.software.kernel = fact(run, "kernel");
  p.control.governor = fact(run, "governor");
  p.control.mig = fact(run, "mig");
  p.thermal.cooling = fact(run, "cooling");
  p.idle.definition = fact(run, "idle");
  p.repeats.count = static_cast<double>(run.blocks.size());
  if (!m.pair.empty()) p.repeats.order = "interleaved";
  p.disclosure.label = "derived";
  tell_meter(run, p);
  tell_sensors(run, p);
  run::facts(Stated(m), p);
  return p;
}

}  // namespace joulediff::rules
