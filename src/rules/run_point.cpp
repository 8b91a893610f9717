#include "rules/run_point.h"

#include <algorithm>
#include <optional>

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
  return p;
}

}  // namespace joulediff::rules
