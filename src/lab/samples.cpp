#include "lab/samples.h"

#include <algorithm>

#include <fmt/format.h>

#include "run/names.h"

namespace joulediff::lab {
namespace {

// Milliwatts that no board draws; a sensor that says so has not begun to measure.
constexpr std::int64_t kImpossible = 5'000'000;

bool is_board_power(run::Source source) {
  using enum run::Source;
  return source == nvml_power_samples || source == nvml_power_instant ||
         source == nvml_power_average || source == nvml_power_memory ||
         source == nvml_power_module || source == amd_power;
}

}  // namespace

void Samples::add(run::Source source, const std::string& channel, Nanoseconds time,
                  std::int64_t value, std::optional<Nanoseconds> uncertainty) {
  if (is_board_power(source) && value > kImpossible) {
    diagnose({Severity::note, "record.absurd_sample",
              fmt::format("{} of {} gave powers that no board draws; they are left out",
                          run::name(source), channel)});
    return;
  }
  const std::scoped_lock lock(mutex_);
  add_locked({source, channel}, time, value, false, uncertainty);
}

void Samples::add(run::Source source, const std::string& channel, Nanoseconds time,
                  const device::Counter::Reading& reading, std::optional<Nanoseconds> uncertainty) {
  if (reading.breaks)
    diagnose({Severity::warning, "record.counter_broke",
              fmt::format("{} of {} fell, leapt or was not read for too long: what was drawn over "
                          "that time is unknown, and windows end there",
                          run::name(source), channel)});
  const std::scoped_lock lock(mutex_);
  add_locked({source, channel}, time, reading.value, reading.breaks, uncertainty);
}

void Samples::add_locked(const Name& name, Nanoseconds time, std::int64_t value, bool breaks,
                         std::optional<Nanoseconds> uncertainty) {
  std::vector<run::Series>& stretches = series_[name];
  if (breaks && !stretches.empty()) {
    give(name);
    given_[name] = {given_[name].stretch + 1, 0};
  }
  // The one reading before a break stands for nothing: a stretch needs two.
  if (breaks && !stretches.empty() && stretches.back().time.size() < 2) stretches.pop_back();
  if (breaks || stretches.empty()) {
    run::Series series;
    series.source = name.first;
    series.channel = name.second;
    stretches.push_back(std::move(series));
  }
  run::Series& series = stretches.back();
  // A clock that was set back must not turn time around.
  if (!series.time.empty() && time <= series.time.back()) return;
  series.time.push_back(time);
  series.value.push_back(value);
  if (uncertainty) series.uncertainty.push_back(*uncertainty);
}

void Samples::diagnose(Diagnostic diagnostic) {
  const std::scoped_lock lock(mutex_);
  for (Diagnostic& earlier : diagnostics_)
    if (earlier.rule == diagnostic.rule && earlier.message == diagnostic.message) {
      earlier.count += diagnostic.count;
      return;
    }
  diagnostics_.push_back(std::move(diagnostic));
}

run::Series Samples::since(run::Source source, const std::string& channel,
                           Nanoseconds begin) const {
  const std::scoped_lock lock(mutex_);
  run::Series part;
  const auto found = series_.find({source, channel});
  if (found == series_.end()) return part;
  const run::Series& series = found->second.back();
  const auto first = std::ranges::lower_bound(series.time, begin) - series.time.begin();
  part.time.assign(series.time.begin() + first, series.time.end());
  part.value.assign(series.value.begin() + first, series.value.end());
  if (!series.uncertainty.empty())
    part.uncertainty.assign(series.uncertainty.begin() + first, series.uncertainty.end());
  return part;
}

void Samples::give(const Name& name) {
  const run::Series& series = series_[name].back();
  Given& given = given_[name];
  const auto from = static_cast<std::ptrdiff_t>(std::exchange(given.readings, series.time.size()));
  Piece piece{given.stretch, {}};
  piece.series.source = series.source;
  piece.series.channel = series.channel;
  piece.series.time.assign(series.time.begin() + from, series.time.end());
  piece.series.value.assign(series.value.begin() + from, series.value.end());
  if (!series.uncertainty.empty())
    piece.series.uncertainty.assign(series.uncertainty.begin() + from, series.uncertainty.end());
  if (!piece.series.time.empty()) fresh_.push_back(std::move(piece));
}

std::vector<Samples::Piece> Samples::fresh() {
  const std::scoped_lock lock(mutex_);
  for (auto& [name, stretches] : series_) {
    if (stretches.empty()) continue;
    give(name);
    forget(name, stretches);
  }
  return std::exchange(fresh_, {});
}

void Samples::forget(const Name& name, std::vector<run::Series>& stretches) {
  stretches.erase(stretches.begin(), stretches.end() - 1);
  run::Series& series = stretches.back();
  const auto& time = series.time;
  // Not at every call: what stays is moved.
  if (time.empty() || time.back() - time.front() < 2 * kRemembered) return;
  const auto old = std::ranges::lower_bound(time, time.back() - kRemembered) - time.begin();
  const auto drop = [old](auto& column) {
    if (!column.empty()) column.erase(column.begin(), column.begin() + old);
  };
  drop(series.value);
  drop(series.uncertainty);
  drop(series.time);
  given_[name].readings -= static_cast<std::size_t>(old);
}

Diagnostics Samples::diagnostics() const {
  const std::scoped_lock lock(mutex_);
  return diagnostics_;
}

std::vector<run::Series> Samples::take_series() {
  const std::scoped_lock lock(mutex_);
  std::vector<run::Series> all;
  for (auto& [name, stretches] : series_)
    for (run::Series& series : stretches) all.push_back(std::move(series));
  series_.clear();
  return all;
}

Diagnostics Samples::take_diagnostics() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(diagnostics_, {});
}

}  // namespace joulediff::lab
