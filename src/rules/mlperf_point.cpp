// A submission in the grammar of measurements.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "rules/mlperf_rules.h"

namespace joulediff::rules {
namespace {

using run::Fact;
using run::Point;

Fact value(const std::optional<Joules>& joules) {
  return joules ? Fact(joules->value) : std::nullopt;
}
Fact value(const std::optional<Seconds>& seconds) {
  return seconds ? Fact(seconds->value) : std::nullopt;
}
Fact count(std::size_t n) {
  return static_cast<double>(n);
}

// Adds one meter's readings to what is said of all: sums of counts, the worst of gaps.
struct Sampling {
  std::size_t inside = 0, nonpositive = 0, not_numbers = 0, overflows = 0, duplicates = 0,
              backward = 0, missing = 0;
  double period = 0, gap = 0, head = 0, tail = 0, slope = 0;

  void add(const meter::Integral& one) {
    inside += one.inside;
    nonpositive += one.nonpositive;
    not_numbers += one.not_numbers;
    overflows += one.overflows;
    duplicates += one.duplicates;
    backward += one.backward;
    missing += one.missing;
    period = std::max(period, one.median_gap.value);
    gap = std::max(gap, one.max_gap.value);
    head = std::max(head, one.head.value);
    tail = std::max(tail, one.tail.value);
    if (std::abs(one.relative_slope) > std::abs(slope)) slope = one.relative_slope;
  }

  // Where so few readings are usable that nothing can be integrated: what is wrong with them.
  void add_unusable(const run::PowerSeries& series, Nanoseconds begin, Nanoseconds end) {
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (series.time[i] < begin || series.time[i] > end) continue;
      const double watts = series.watts[i];
      ++inside;
      not_numbers += std::isnan(watts) ? 1 : 0;
      overflows += std::abs(watts) >= meter::kOverflow ? 1 : 0;
      nonpositive += watts <= 0 && watts > -meter::kOverflow ? 1 : 0;
    }
  }

  void tell(Point& p) const {
    if (inside == 0) return;
    p.sampling.readings = count(inside);
    p.sampling.nonpositive = count(nonpositive);
    p.sampling.not_numbers = count(not_numbers);
    p.sampling.overflows = count(overflows);
    p.sampling.duplicates = count(duplicates);
    p.sampling.backward = count(backward);
    p.sampling.missing_share = static_cast<double>(missing) / static_cast<double>(inside + missing);
    if (period > 0) p.sampling.period = period;
    if (gap > 0) p.sampling.largest_gap = gap;
    p.window.head = head;
    p.window.tail = tail;
    p.thermal.slope = slope;
  }
};

// "Uncertainty,0.009589,0.009294,0.015984,611,11,563,37": the mean, least, most; readings, over the
// limit, within it, unknown. The last report is that of the testing run.
void tell_uncertainty(const run::Session& server, Point& p) {
  for (const run::Message& message : server.ptd_messages) {
    if (message.command != "Uncertainty") continue;
    std::vector<double> figures;
    std::size_t at = message.reply.find(',');
    while (at != std::string::npos && figures.size() < 7) {
      figures.push_back(std::strtod(message.reply.c_str() + at + 1, nullptr));
      at = message.reply.find(',', at + 1);
    }
    if (figures.size() < 7 || !(figures[0] > 0) || !std::isfinite(figures[0])) continue;
    p.meter.uncertainty = figures[0];
    p.meter.over_limit = figures[4];
    p.meter.judged = figures[4] + figures[5];
  }
}

// "YokogawaWT330,...,no_cal_date,YOKOGAWA;WT333;C2QH26002V;F1.06"
void tell_meter(const run::Session& server, Point& p) {
  for (const run::Message& message : server.ptd_messages) {
    if (message.command != "Identify") continue;
    p.meter.name = message.reply.substr(0, message.reply.find(','));
    if (message.reply.find("no_cal_date") != std::string::npos) p.meter.calibration_known = false;
    const std::string identity = message.reply.substr(message.reply.rfind(',') + 1);
    const std::size_t model = identity.find(';');
    if (model == std::string::npos) continue;
    const std::size_t serial = identity.find(';', model + 1);
    if (serial != std::string::npos)
      p.meter.serial = identity.substr(serial + 1, identity.find(';', serial + 1) - serial - 1);
  }
}

void tell_quality(const run::Submission& s, Point& p) {
  const Reached reached = quality_of(s);
  if (!reached.value || !reached.lacking.empty()) return;
  p.quality.metric = reached.metric;
  p.quality.value = reached.value;
  p.quality.target = reached.target;
  p.quality.higher_is_better = true;
}

void tell_inference(const run::Submission& s, const Score& score, Point& p) {
  const run::Inference& i = *s.inference;
  const run::LoadGenLog& log = i.testing.loadgen;
  p.kind = "inference";
  if (!log.validity.empty()) p.work.valid = log.validity == "VALID";
  p.scenario.arrival = log.scenario;
  if (log.latency_ns) p.scenario.observed_seconds = *log.latency_ns * 1e-9;
  // Offline is full load by its definition; of the others nothing is said.
  if (log.scenario == "Offline") p.idle.utilisation = 1;
  p.window.markers = log.power_begin && log.power_end;
  p.window.scored = "window";
  p.boundary.kind = "node-ac";
  p.energy.mean = value(score.official_joules);
  p.energy.trapezoid = value(score.joules());
  const auto hash = i.files.find("run_1/spl.txt");
  if (hash != i.files.end()) p.scenario.log_hash = hash->second;
  if (const auto m = measured(i.testing)) {
    Sampling sampling;
    sampling.add(m->total);
    sampling.tell(p);
    if (m->total.known_before) p.idle.watts = m->total.least_before.value;
    const run::PowerLog& power = i.testing.power;
    double factor = 0;
    std::size_t n = 0;
    for (std::size_t k = 0; k < power.total.size(); ++k) {
      const float pf = power.total.power_factor[k];
      if (power.total.time[k] < m->begin || power.total.time[k] > m->end || !(pf > 0)) continue;
      factor += static_cast<double>(pf);
      ++n;
    }
    if (n > 0) p.meter.power_factor = factor / static_cast<double>(n);
    if (power.analyzers.size() > 1) {
      p.boundary.meters = count(power.analyzers.size());
      p.boundary.summed_by = "line";
    }
    constexpr Nanoseconds kReach = 5'000'000'000;
    if (const auto shift =
            meter::best_shift({power.total.time, power.total.watts}, m->begin, m->end, kReach))
      p.clock.shift = shift->value;
    if (score.ranging_watts && score.official_watts)
      p.meter.reference_change = *score.official_watts / *score.ranging_watts - 1;
  } else if (log.power_begin && log.power_end) {
    Sampling sampling;
    sampling.add_unusable(i.testing.power.total, *log.power_begin, *log.power_end);
    sampling.tell(p);
  }
  double skew = -1;
  for (const auto& [mode, instants] : i.client.phases) {
    const auto server = i.server.phases.find(mode);
    if (server == i.server.phases.end()) continue;
    for (std::size_t k = 0; k < std::min(instants.size(), server->second.size()); ++k)
      skew = std::max(skew, std::abs(instants[k].unix_time - server->second[k].unix_time));
  }
  if (skew >= 0) p.clock.skew = skew;
  tell_uncertainty(i.server, p);
  tell_meter(i.server, p);
  p.meter.range = fixed_range(i).ours == Checked::failed ? "auto" : "fixed";
  p.disclosure.hashes_match = hashes(i).ours == Checked::passed;
  p.repeats.count = 1;
}

void tell_training(const run::Submission& s, const Score& score, Point& p) {
  p.kind = "training";
  p.window.markers = true;
  p.window.scored = "log";
  p.window.in_window_joules = value(score.trapezoid);
  p.energy.trapezoid = value(score.trapezoid);
  p.energy.joules = value(score.official_joules);
  p.energy.integrator = "mean";
  p.phases.load = false;
  Sampling sampling;
  double log = 0, run_seconds = 0, estimated = 0, total = 0, skew = 0;
  std::set<double> efficiencies;
  for (const run::TrainingRun& run : s.training->runs) {
    const TrainingEnergy energy = training_energy(run);
    if (energy.time_to_train && energy.log) {
      log += energy.log->value;
      run_seconds += energy.time_to_train->value;
    }
    estimated += energy.estimated.value;
    if (energy.trapezoid) total += energy.trapezoid->value;
    for (const run::TrainingMeter& meter : run.meters) {
      if (meter.efficiency) efficiencies.insert(*meter.efficiency);
      if (!run.start || !run.stop || meter.series.size() == 0) continue;
      if (const auto one =
              meter::integrate({meter.series.time, meter.series.watts}, *run.start, *run.stop))
        sampling.add(*one);
      else
        sampling.add_unusable(meter.series, *run.start, *run.stop);
      // A log that does not reach over its run has another clock.
      const double early = to_seconds(*run.start - meter.series.time.back()).value,
                   late = to_seconds(meter.series.time.front() - *run.stop).value;
      if (early > 0 || late > 0)
        skew = std::max(skew, std::abs(to_seconds(meter.series.time.front() - *run.start).value));
    }
    p.repeats.energy_runs.push_back(run.name);
    p.repeats.performance_runs.push_back(run.name);
    // As the stated energy is made, which is the mean of the runs that count.
    if (energy.prorated && score.official_joules)
      p.repeats.joules.push_back(energy.prorated->value * s.training->scaling_factor.value_or(1));
  }
  sampling.tell(p);
  if (skew > 0) p.clock.skew = skew;
  if (log > 0) {
    const auto runs = static_cast<double>(std::max<std::size_t>(1, score.windows.size()));
    p.window.log_seconds = log / runs;
    p.window.seconds = run_seconds / runs;
  }
  if (estimated > 0 && total > 0) {
    p.boundary.estimated = "interconnect";
    p.boundary.estimated_share = estimated / total;
  }
  if (efficiencies.size() == 1) p.boundary.conversion = *efficiencies.begin();
  p.repeats.count = count(s.training->runs.size());
  p.repeats.trimming = "olympic";
}

void tell_tiny(const run::Submission& s, const Score& score, Point& p) {
  const run::Tiny& tiny = *s.tiny;
  p.kind = "tiny";
  p.scenario.arrival = "SingleStream";
  p.boundary.kind = "rail";
  p.window.markers = true;
  p.window.scored = "window";
  double shortest = 0;
  for (const MlperfWindow& window : score.windows) {
    if (shortest == 0 || window.seconds.value < shortest) shortest = window.seconds.value;
    if (window.trapezoid) p.repeats.joules.push_back(window.trapezoid->value / window.units);
  }
  // Of one window: that is what the rule on durations is about.
  if (shortest > 0) p.window.seconds = shortest;
  p.repeats.count = count(score.windows.size());
  p.repeats.trimming = "median";
  if (!tiny.rate) return;
  p.sampling.period = 1 / *tiny.rate;
  std::size_t bad = 0, zero = 0;
  for (const float sample : tiny.microjoules) {
    bad += std::isfinite(sample) ? 0 : 1;
    zero += sample <= 0 ? 1 : 0;
  }
  p.sampling.readings = count(tiny.microjoules.size());
  p.sampling.not_numbers = count(bad);
  p.sampling.nonpositive = count(zero);
}

// What a power submission must say of its system.
constexpr std::array kPowerFields{"power_management",
                                  "filesystem",
                                  "boot_firmware_version",
                                  "management_firmware_version",
                                  "other_hardware",
                                  "number_of_type_nics_installed",
                                  "nics_enabled_firmware",
                                  "nics_enabled_os",
                                  "nics_enabled_connected",
                                  "network_speed_mbit",
                                  "power_supply_quantity_and_rating_watts",
                                  "power_supply_details",
                                  "disk_drives",
                                  "disk_controllers",
                                  "system_power_only"};

std::string described(const run::Submission& s, const char* key) {
  const auto found = s.description.find(key);
  return found == s.description.end() ? std::string() : found->second;
}

}  // namespace

Point point_of(const run::Submission& s, const Score& score) {
  Point p;
  p.label = s.path;
  p.work.unit = score.unit;
  p.work.count = score.units;
  p.work.model = s.benchmark;
  p.energy.joules = value(score.joules());
  p.energy.standing = name(score.standing);
  p.energy.integrator = "trapezoid";
  p.window.seconds = value(score.window);
  p.phases.warmup = false;
  p.idle.treatment = "include";
  p.hardware.device = described(s, "accelerator_model_name");
  p.thermal.cooling = described(s, "cooling");
  p.software.framework = described(s, "framework");
  p.disclosure.label = "derived";
  tell_quality(s, p);
  if (s.inference) {
    tell_inference(s, score, p);
    if (!s.description.empty())
      for (const char* field : kPowerFields)
        if (described(s, field).empty()) p.disclosure.missing.emplace_back(field);
  }
  if (s.training) tell_training(s, score, p);
  if (s.tiny) tell_tiny(s, score, p);
  return p;
}

}  // namespace joulediff::rules
