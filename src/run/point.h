// A measurement in the grammar of measurements: what was done, how well, under what load, over what
// window, with what meter at what boundary, how often. A recorded run fills it, a submission fills
// it, and so does a file that a person writes about a measurement made elsewhere (docs/points.md).
//
// Every fact may be unknown: an empty text, an empty list, an empty optional. A rule that needs a
// fact which is unknown says nothing, unless it is the rule that asks for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulediff::run {

using Fact = std::optional<double>;
using Flag = std::optional<bool>;

struct Point {
  std::string label;
  std::string kind;   // "inference", "training", "tiny"; what its durations are held against
  std::string claim;  // what a comparison is to show: "hardware", "software"

  struct {
    std::string unit;  // "token", "image", "sample", "inference"
    Fact count;        // completed in the window
    Fact attempted;
    Flag valid;  // as the benchmark's own verdict has it
    std::string model, model_hash, dataset, input_lengths, output_lengths;
    std::string converted_from;  // the unit that was counted, where `unit` was computed from it
    Fact factor;                 // units for each of those
  } work;

  struct {
    std::string metric;
    Fact value, target;
    Fact uncertainty;  // of the value, relative, half width at 95 %
    Flag higher_is_better;
    std::vector<std::string> precision;  // of weights and activations
    std::string accuracy_build, performance_build;
  } quality;

  struct {
    std::string arrival;  // "offline", "poisson 20/s", "closed loop"
    Fact batch, concurrency;
    Fact slo_percentile, slo_seconds, observed_seconds, confidence;
    Fact observed_uncertainty;  // of the observed seconds, relative, half width at 95 %
    std::string log_hash, inferred_from;
  } scenario;

  struct {
    Fact joules;
    std::string standing;    // "measured", "estimated", "modelled"
    std::string integrator;  // "trapezoid", "mean", "counter"
    Fact trapezoid, mean;    // joules by each of the two
    Fact uncertainty;        // of this window without the meter's own, relative, at 95 %
  } energy;

  struct {
    Fact seconds;
    Flag markers;           // derived from markers of the workload
    std::string scored;     // "window", "log": what the stated joules were taken from
    Fact log_seconds;       // from the first reading to the last
    Fact in_window_joules;  // where the log was scored
    Fact head, tail;        // seconds at the window's ends without a reading
  } window;

  struct {
    Flag load, compile, warmup, checkpoint;  // true: inside the window
  } phases;

  struct {
    Fact period;  // median seconds between readings
    Fact largest_gap, missing_share;
    Fact readings, nonpositive, not_numbers, overflows, duplicates, backward;
    Fact declared_period, longest_repeat, averaging;  // seconds
  } sampling;

  struct {
    Fact skew;   // seconds between sources, the largest
    Fact shift;  // seconds by which the power's steps lie off the markers
  } clock;

  struct {
    std::string kind;                   // "rail", "board", "node-dc", "node-ac", "rack", "facility"
    std::vector<std::string> includes;  // "host", "dram", "nic", "storage", "fans", "psu"
    std::string estimated;              // which components' energy is no measurement
    Fact estimated_share;
    Fact conversion;  // efficiency applied
    Flag conversion_documented;
    Fact nodes_measured, nodes_participating;
    Flag unrelated_load;
    Fact meters;
    std::string summed_by;  // "time", "line"
  } boundary;

  struct {
    std::string name, serial;
    Fact uncertainty;         // relative, mean
    Flag telemetry;           // built in, not a power analyzer
    Fact over_limit, judged;  // readings above the limit of uncertainty, and all that were judged
    Flag calibration_known;
    Fact calibration_days;  // from the calibration to the measurement
    std::string range;      // "auto", "fixed"
    Fact crest_factor, peak_amps, range_amps, power_factor;
    Fact reference_change;  // power against the reference (ranging) run, relative
    std::string proxy;      // "TDP", "PSU rating": what stands in for a measurement
  } meter;

  struct {
    Fact watts;
    std::string definition, treatment;  // "include", "subtract", "apportion"
    Fact utilisation;
  } idle;

  struct {
    std::string clocks, power_cap, governor, fans, persistence, mig;
    Fact clock_change;  // relative, within the window
    Flag throttled;
  } control;

  struct {
    Fact slope;  // relative change of power over the last half of the window
    Fact start_celsius;
    std::string cooling;
  } thermal;

  struct {
    std::string device;
    Fact devices;
  } hardware;

  struct {
    std::string driver, framework, compiler, kernel;
  } software;

  struct {
    std::vector<double> joules;   // of each run, per unit of work
    std::vector<double> seconds;  // of each run, per unit of work
    Fact count;
    std::string order;     // "interleaved", "random", "sequential"
    std::string trimming;  // "none", "olympic", "median"
    Flag dropped_disclosed;
    std::vector<std::string> energy_runs, performance_runs;
  } repeats;

  struct {
    std::vector<std::string> missing;  // mandatory fields that are empty
    Flag hashes_match;
    std::string label;  // "official", "derived", "unverified"
  } disclosure;

  struct {
    Fact pue;
    Flag annual_for_hourly;  // the PUE is a year's mean, the claim is of an hour
    std::string pue_site, energy_boundary, cooling;
    Fact utilisation, peak_watts, mean_watts;
    std::string tariff, currency, price_date;
    Flag demand_charge;
    std::string carbon_zone, carbon_kind;  // "average", "marginal"
    Fact carbon_step_hours;
    Fact lifetime_years, embodied_kg, resource_share;
    std::vector<std::string> sensitivity;  // of what the claim's stability was tried
    Flag flips, flip_stated;
    Flag total_saving_claimed, demand_term;
    Flag stated;  // the point makes a claim about a facility
  } facility;

  // Joules for each unit of work; none where either is unknown.
  Fact per_unit() const {
    if (!energy.joules || !work.count || !(*work.count > 0)) return {};
    return *energy.joules / *work.count;
  }
};

// Calls visit(section, name, value) for each fact, in the order in which people read them.
template <class V, class P>
void facts(V&& visit, P& p) {
  visit("", "label", p.label);
  visit("", "kind", p.kind);
  visit("", "claim", p.claim);
#define JD_FACT(section, name) visit(#section, #name, p.section.name)
  JD_FACT(work, unit), JD_FACT(work, count), JD_FACT(work, attempted), JD_FACT(work, valid);
  JD_FACT(work, model), JD_FACT(work, model_hash), JD_FACT(work, dataset);
  JD_FACT(work, input_lengths), JD_FACT(work, output_lengths);
  JD_FACT(work, converted_from), JD_FACT(work, factor);
  JD_FACT(quality, metric), JD_FACT(quality, value), JD_FACT(quality, target);
  JD_FACT(quality, uncertainty);
  JD_FACT(quality, higher_is_better), JD_FACT(quality, precision);
  JD_FACT(quality, accuracy_build), JD_FACT(quality, performance_build);
  JD_FACT(scenario, arrival), JD_FACT(scenario, batch), JD_FACT(scenario, concurrency);
  JD_FACT(scenario, slo_percentile), JD_FACT(scenario, slo_seconds);
  JD_FACT(scenario, observed_seconds), JD_FACT(scenario, confidence);
  JD_FACT(scenario, observed_uncertainty);
  JD_FACT(scenario, log_hash), JD_FACT(scenario, inferred_from);
  JD_FACT(energy, joules), JD_FACT(energy, standing), JD_FACT(energy, integrator);
  JD_FACT(energy, trapezoid), JD_FACT(energy, mean);
  JD_FACT(energy, uncertainty);
  JD_FACT(window, seconds), JD_FACT(window, markers), JD_FACT(window, scored);
  JD_FACT(window, log_seconds), JD_FACT(window, in_window_joules);
  JD_FACT(window, head), JD_FACT(window, tail);
  JD_FACT(phases, load), JD_FACT(phases, compile), JD_FACT(phases, warmup);
  JD_FACT(phases, checkpoint);
  JD_FACT(sampling, period), JD_FACT(sampling, largest_gap), JD_FACT(sampling, missing_share);
  JD_FACT(sampling, readings), JD_FACT(sampling, nonpositive), JD_FACT(sampling, not_numbers);
  JD_FACT(sampling, overflows), JD_FACT(sampling, duplicates), JD_FACT(sampling, backward);
  JD_FACT(sampling, declared_period), JD_FACT(sampling, longest_repeat);
  JD_FACT(sampling, averaging);
  JD_FACT(clock, skew), JD_FACT(clock, shift);
  JD_FACT(boundary, kind), JD_FACT(boundary, includes), JD_FACT(boundary, estimated);
  JD_FACT(boundary, estimated_share), JD_FACT(boundary, conversion);
  JD_FACT(boundary, conversion_documented), JD_FACT(boundary, nodes_measured);
  JD_FACT(boundary, nodes_participating), JD_FACT(boundary, unrelated_load);
  JD_FACT(boundary, meters), JD_FACT(boundary, summed_by);
  JD_FACT(meter, name), JD_FACT(meter, serial), JD_FACT(meter, uncertainty);
  JD_FACT(meter, telemetry), JD_FACT(meter, over_limit), JD_FACT(meter, judged);
  JD_FACT(meter, calibration_known), JD_FACT(meter, calibration_days), JD_FACT(meter, range);
  JD_FACT(meter, crest_factor), JD_FACT(meter, peak_amps), JD_FACT(meter, range_amps);
  JD_FACT(meter, power_factor), JD_FACT(meter, reference_change), JD_FACT(meter, proxy);
  JD_FACT(idle, watts), JD_FACT(idle, definition), JD_FACT(idle, treatment);
  JD_FACT(idle, utilisation);
  JD_FACT(control, clocks), JD_FACT(control, power_cap), JD_FACT(control, governor);
  JD_FACT(control, fans), JD_FACT(control, persistence), JD_FACT(control, mig);
  JD_FACT(control, clock_change), JD_FACT(control, throttled);
  JD_FACT(thermal, slope), JD_FACT(thermal, start_celsius), JD_FACT(thermal, cooling);
  JD_FACT(hardware, device), JD_FACT(hardware, devices);
  JD_FACT(software, driver), JD_FACT(software, framework), JD_FACT(software, compiler);
  JD_FACT(software, kernel);
  JD_FACT(repeats, joules), JD_FACT(repeats, seconds);
  JD_FACT(repeats, count), JD_FACT(repeats, order);
  JD_FACT(repeats, trimming), JD_FACT(repeats, dropped_disclosed);
  JD_FACT(repeats, energy_runs), JD_FACT(repeats, performance_runs);
  JD_FACT(disclosure, missing), JD_FACT(disclosure, hashes_match), JD_FACT(disclosure, label);
  JD_FACT(facility, stated), JD_FACT(facility, pue), JD_FACT(facility, annual_for_hourly);
  JD_FACT(facility, pue_site), JD_FACT(facility, energy_boundary), JD_FACT(facility, cooling);
  JD_FACT(facility, utilisation), JD_FACT(facility, peak_watts), JD_FACT(facility, mean_watts);
  JD_FACT(facility, tariff), JD_FACT(facility, currency), JD_FACT(facility, price_date);
  JD_FACT(facility, demand_charge), JD_FACT(facility, carbon_zone);
  JD_FACT(facility, carbon_kind), JD_FACT(facility, carbon_step_hours);
  JD_FACT(facility, lifetime_years), JD_FACT(facility, embodied_kg);
  JD_FACT(facility, resource_share), JD_FACT(facility, sensitivity);
  JD_FACT(facility, flips), JD_FACT(facility, flip_stated);
  JD_FACT(facility, total_saving_claimed), JD_FACT(facility, demand_term);
#undef JD_FACT
}

// Reads a point as TOML. A key that is none of the facts, a value of another type, and a number
// that is not finite or makes no sense are bad input, with the place.
Result<Point> read_point_text(std::string_view name, std::string_view text);
Result<Point> read_point(const std::string& path);

}  // namespace joulediff::run
