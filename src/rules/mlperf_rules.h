// The pieces of judge(): one function for each figure and each check.
#pragma once

#include <fmt/format.h>

#include "base/format.h"
#include "meter/integrate.h"
#include "rules/mlperf.h"

namespace joulediff::rules {

using Checks = std::vector<MlperfCheck>;

// The window that LoadGen marks, and what the meter read in it.
struct Measured {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  meter::Integral total;
  Joules trapezoid;  // of all analyzers, each by its own clock
  Joules bridged;
};
std::optional<Measured> measured(const run::InferencePart& part);

Score inference_score(const run::Inference& inference);
Score training_score(const run::Training& training);
Score tiny_score(const run::Tiny& tiny);

run::Point point_of(const run::Submission& submission, const Score& score);

// What the accuracy run reached of what the task asks for; higher is better for all metrics here.
struct Reached {
  bool target_known = false;
  std::string metric;  // of several the one that is nearest to its target, or furthest below
  std::optional<double> value, target;
  std::string lacking;  // a metric that the task asks for and the accuracy run does not state
};
Reached quality_of(const run::Submission& submission);

// The official checker's eleven, and what it lacks.
Checks inference_checks(const run::Submission& submission, const KnownSources& known);
Checks training_checks(const run::Submission& submission);
Checks tiny_checks(const run::Submission& submission);

MlperfCheck client_sources(const run::Inference& i, const KnownSources& known);
MlperfCheck server_sources(const run::Inference& i, const KnownSources& known);
MlperfCheck ptd_replies(const run::Inference& i);
MlperfCheck uuids(const run::Inference& i);
MlperfCheck session_names(const run::Inference& i);
MlperfCheck phase_clocks(const run::Inference& i);
MlperfCheck phase_windows(const run::Inference& i);
MlperfCheck durations(const run::Inference& i);
MlperfCheck reference_power(const run::Inference& i);
MlperfCheck messages(const run::Inference& i);
MlperfCheck hashes(const run::Inference& i);
MlperfCheck uncertainty_activated(const run::Inference& i);
MlperfCheck meter_errors(const run::Inference& i);
MlperfCheck uncertain_readings(const run::Inference& i);
MlperfCheck analyzer(const run::Inference& i);
MlperfCheck debug_mode(const run::Inference& i);
MlperfCheck valid_result(const run::Inference& i);
MlperfCheck minimum_duration(const run::Inference& i);
MlperfCheck fixed_range(const run::Inference& i);
MlperfCheck peak_current(const run::Inference& i);
MlperfCheck log_clock(const run::Inference& i);
MlperfCheck summary_agrees(const run::Inference& i);
MlperfCheck filed(const run::Submission& submission);
MlperfCheck quality(const run::Submission& submission);

// What a run of training is charged: the official way, and by the window.
struct TrainingEnergy {
  std::optional<Seconds> time_to_train;
  std::optional<Joules> prorated;
  std::optional<Joules> rectangles_in_window;  // the official integrator within the window
  std::optional<Joules> trapezoid;
  Joules estimated;
  std::optional<Seconds> log;
};
TrainingEnergy training_energy(const run::TrainingRun& run);

// Indices of the runs that count: without the fastest and the slowest where there are three or
// more.
std::vector<std::size_t> olympic(const std::vector<TrainingEnergy>& energies);

MlperfCheck passed(std::string id, Checked official = Checked::passed);
std::string short_time(Seconds seconds);
double unix_seconds(Nanoseconds time);

}  // namespace joulediff::rules
