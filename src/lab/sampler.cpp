#include "lab/sampler.h"

#include <algorithm>

#include "lab/clock.h"
#include "lab/tick_watch.h"

namespace joulediff::lab {
namespace {

constexpr Nanoseconds kHostPeriod = 20 * kMillisecond;
constexpr Nanoseconds kFieldPeriod = 50 * kMillisecond;
constexpr Nanoseconds kRingPeriod = kSecond;  // the ring holds 2.4 s
constexpr Nanoseconds kMissingSensorPause = kSecond;

void sleep_until(Nanoseconds time, const std::stop_token& stop) {
  constexpr Nanoseconds kSlice = 20 * kMillisecond;  // how late a stop may be noticed
  for (Nanoseconds left = time - now(); left > 0 && !stop.stop_requested(); left = time - now()) {
    const Nanoseconds slice = std::min(left, kSlice);
    const timespec pause{slice / kSecond, slice % kSecond};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

Sampler::Sampler(const device::Board* board) : board_(board), rapl_(device::Rapl::open()) {
  ring_seen_us_ = static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME) / 1000);
  if (board_) {
    if (const auto limit = board_->power_limit()) add(run::Source::nvml_power_limit, now(), *limit);
    counter_ = std::jthread([this](std::stop_token stop) { read_counter(stop); });
  }
  sensors_ = std::jthread([this](std::stop_token stop) { read_sensors(stop); });
}

Sampler::~Sampler() {
  stop();
}

void Sampler::watch(pid_t root) {
  const std::scoped_lock lock(mutex_);
  tree_.emplace(root);
  read_processor_time();
}

void Sampler::unwatch() {
  const std::scoped_lock lock(mutex_);
  if (tree_) read_processor_time();
  tree_.reset();
}

std::vector<Reading> Sampler::meter_since(Nanoseconds begin) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Reading> readings;
  const auto found = series_.find(board_ ? run::Source::nvml_energy : run::Source::host_cpu);
  if (found == series_.end()) return readings;
  const run::Series& series = found->second;
  const auto first = std::lower_bound(series.time.begin(), series.time.end(), begin - kSecond);
  for (auto i = static_cast<std::size_t>(first - series.time.begin()); i < series.time.size(); ++i)
    readings.push_back({series.time[i], series.uncertainty.empty() ? 0 : series.uncertainty[i],
                        static_cast<double>(series.value[i])});
  return readings;
}

std::vector<run::Series> Sampler::stop() {
  for (std::jthread* thread : {&counter_, &sensors_}) {
    if (!thread->joinable()) continue;
    thread->request_stop();
    thread->join();
  }
  const std::scoped_lock lock(mutex_);
  std::vector<run::Series> all;
  for (auto& [source, series] : series_) all.push_back(std::move(series));
  series_.clear();
  return all;
}

void Sampler::read_counter(std::stop_token stop) {
  TickWatch watch;
  while (!stop.stop_requested()) {
    const Nanoseconds begin = now();
    const auto value = board_->energy();
    const Nanoseconds end = now();
    if (!value) {
      sleep_until(end + kMissingSensorPause, stop);
      continue;
    }
    if (const auto tick = watch.observe(begin, end, *value)) {
      const std::scoped_lock lock(mutex_);
      add(run::Source::nvml_energy, tick->time, tick->value, tick->half_width);
    }
    sleep_until(watch.next_read(), stop);
  }
}

void Sampler::read_sensors(std::stop_token stop) {
  Nanoseconds next_host = now(), next_fields = next_host, next_ring = next_host + kRingPeriod;
  // A late read is skipped, not caught up: samples in a burst say nothing more.
  const auto advance = [](Nanoseconds& next, Nanoseconds period) {
    next = std::max(next + period, now());
  };
  while (!stop.stop_requested()) {
    const Nanoseconds time = now();
    if (time >= next_host) {
      const std::scoped_lock lock(mutex_);
      if (tree_) read_processor_time();
      if (rapl_)
        if (const auto energy = rapl_->energy()) add(run::Source::rapl_package, now(), *energy);
      advance(next_host, kHostPeriod);
    }
    if (board_ && time >= next_fields) {
      read_fields();
      advance(next_fields, kFieldPeriod);
    }
    if (board_ && time >= next_ring) {
      read_ring();
      advance(next_ring, kRingPeriod);
    }
    sleep_until(board_ ? std::min({next_host, next_fields, next_ring}) : next_host, stop);
  }
  if (board_) read_ring();
}

void Sampler::read_fields() {
  const Nanoseconds begin = now();
  const device::Board::Power power = board_->power();
  const std::pair<run::Source, std::optional<std::int64_t>> values[] = {
      {run::Source::nvml_power_instant, power.instant},
      {run::Source::nvml_power_average, power.average},
      {run::Source::nvml_power_memory, power.memory},
      {run::Source::nvml_sm_clock, board_->sm_clock()},
      {run::Source::nvml_memory_clock, board_->memory_clock()},
      {run::Source::nvml_temperature, board_->temperature()},
      {run::Source::nvml_throttle, board_->throttle()},
  };
  const Nanoseconds time = begin + (now() - begin) / 2;
  const std::scoped_lock lock(mutex_);
  for (const auto& [source, value] : values)
    if (value) add(source, time, *value);
}

void Sampler::read_ring() {
  const Nanoseconds offset = -wall_minus_monotonic();
  const std::vector<device::RingSample> ring = board_->ring(ring_seen_us_);
  const std::scoped_lock lock(mutex_);
  for (const device::RingSample& sample : ring) {
    add(run::Source::nvml_power_samples, static_cast<Nanoseconds>(sample.time_us) * 1000 + offset,
        sample.milliwatts);
    ring_seen_us_ = sample.time_us;
  }
}

void Sampler::read_processor_time() {
  const Nanoseconds begin = now();
  const Nanoseconds used = tree_->processor_time();
  add(run::Source::host_cpu, begin + (now() - begin) / 2, used);
}

void Sampler::add(run::Source source, Nanoseconds time, std::int64_t value,
                  std::optional<Nanoseconds> uncertainty) {
  run::Series& series = series_[source];
  series.source = source;
  // A clock that was set back between two fetches of the ring must not turn time around.
  if (!series.time.empty() && time <= series.time.back()) return;
  series.time.push_back(time);
  series.value.push_back(value);
  if (uncertainty) series.uncertainty.push_back(*uncertainty);
}

}  // namespace joulediff::lab
