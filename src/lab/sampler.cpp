#include "lab/sampler.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "attribute/conditions.h"
#include "device/external.h"
#include "device/hwmon.h"
#include "device/meter_file.h"
#include "device/rapl.h"
#include "device/sysfs.h"
#include "lab/clock.h"
#include "lab/foreign_load.h"
#include "lab/outside_readings.h"
#include "lab/repeat.h"
#include "lab/ring_watch.h"
#include "lab/tick_watch.h"

namespace joulediff::lab {
namespace {

constexpr Nanoseconds kHostPeriod = 20 * kMillisecond;
constexpr Nanoseconds kFieldPeriod = 50 * kMillisecond;
constexpr Nanoseconds kRingPeriod = kSecond;  // the ring holds 2.4 s
constexpr Nanoseconds kUsersPeriod = kSecond / 4;
constexpr Nanoseconds kMissingSensorPause = kSecond;
constexpr Nanoseconds kClockKnown = 3 * kSecond;   // an outside meter's clock is, after so long
constexpr Nanoseconds kClockMargin = 5 * kSecond;  // by which an outside meter's clock may be off

Diagnostic lost_board(const std::string& uuid) {
  return {Severity::error, "record.board_lost",
          fmt::format("board {} fell off the bus while it was recorded (the kernel log names an "
                      "Xid): nothing is known of it after that; reset it or restart the machine",
                      uuid)};
}

Diagnostic no_counter(const std::string& board) {
  return {Severity::warning, "record.no_counter",
          fmt::format("board {} has no energy counter that can be read: its energy is unknown, at "
                      "most its power is known",
                      board)};
}

std::string process_name(pid_t pid) {
  return device::first_line(fmt::format("/proc/{}/comm", pid));
}

}  // namespace

Sampler::Sampler(Meters meters) : meters_(std::move(meters)), begin_(now()) {
  for (const device::Board& board : meters_.boards) {
    start("the energy counter of board " + board.info().uuid,
          [board](Shared& shared, const std::stop_token& stop) {
            read_counter(board, shared, stop);
          });
    start(
        "the sensors of board " + board.info().uuid,
        [board](Shared& shared, const std::stop_token& stop) { read_board(board, shared, stop); });
  }
  for (const device::AmdBoard& board : meters_.amd_boards)
    start("the sensors of board " + board.id(),
          [board](Shared& shared, const std::stop_token& stop) { read_amd(board, shared, stop); });
  start("the host's counters",
        [root = meters_.powercap](Shared& shared, const std::stop_token& stop) {
          read_host(root, shared, stop);
        });
  start("the host's monitoring chips",
        [root = meters_.hwmon](Shared& shared, const std::stop_token& stop) {
          read_hwmon(root, shared, stop);
        });
  for (const std::string& meter : meters_.outside)
    if (!is_meter_file(meter))
      start("the meter " + meter, [meter](Shared& shared, const std::stop_token& stop) {
        read_program(meter, shared, stop);
      });
}

Sampler::~Sampler() {
  end();
}

void Sampler::start(std::string what, Body body) {
  std::promise<void> ended;
  std::future<void> has_ended = ended.get_future();
  std::thread thread([shared = shared_, stop = stop_.get_token(), body = std::move(body),
                      ended = std::move(ended)]() mutable {
    body(*shared, stop);
    ended.set_value();
  });
  workers_.push_back({std::move(what), std::move(has_ended), std::move(thread)});
}

void Sampler::watch(pid_t root) {
  const std::scoped_lock lock(shared_->mutex);
  shared_->tree.emplace(root);
  shared_->root = root;
  shared_->read_processor_time();
}

void Sampler::unwatch() {
  const std::scoped_lock lock(shared_->mutex);
  shared_->root = 0;
  if (shared_->tree) shared_->read_processor_time();
  shared_->tree.reset();
}

std::vector<Reading> Sampler::meter_since(Nanoseconds begin) const {
  const run::Series series =
      meters_.boards.empty()
          ? shared_->samples.since(run::Source::host_cpu, "", begin - kSecond)
          : shared_->samples.since(run::Source::nvml_energy, meters_.boards.front().info().uuid,
                                   begin - kSecond);
  std::vector<Reading> readings;
  readings.reserve(series.time.size());
  for (std::size_t i = 0; i < series.time.size(); ++i)
    readings.push_back({series.time[i], series.uncertainty.empty() ? 0 : series.uncertainty[i],
                        static_cast<double>(series.value[i])});
  return readings;
}

Conditions Sampler::board_state(Nanoseconds begin, Nanoseconds end) const {
  if (meters_.boards.empty()) return {};
  const std::string& uuid = meters_.boards.front().info().uuid;
  run::Block block;
  for (const run::Source source : {run::Source::nvml_sm_clock, run::Source::nvml_throttle}) {
    block.series.push_back(shared_->samples.since(source, uuid, begin));
    block.series.back().source = source;
  }
  const std::vector<meter::Reading> window{{begin, end, {}}};
  return {attribute::mean_over(block, run::Source::nvml_sm_clock, window),
          attribute::held_back(block, window), std::nullopt};
}

Sampler::Gathered Sampler::stop(Nanoseconds patience) {
  end(patience);
  return {shared_->samples.take_series(), shared_->samples.take_diagnostics()};
}

void Sampler::end(Nanoseconds patience) {
  if (workers_.empty()) return;
  stop_.request_stop();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience);
  for (Worker& worker : workers_) {
    if (worker.ended.wait_until(deadline) == std::future_status::ready) {
      worker.thread.join();
    } else {
      worker.thread.detach();
      shared_->samples.diagnose(
          {Severity::warning, "record.meter_hung",
           fmt::format("{}: a read did not return; what it gave before is kept, and after that "
                       "nothing is known of it",
                       worker.what)});
    }
  }
  workers_.clear();
  read_files();
}

void Sampler::read_counter(const device::Board& board, Shared& shared,
                           const std::stop_token& stop) {
  const std::string& uuid = board.info().uuid;
  TickWatch watch;
  // 32 bits of millijoules wrap; wider ones do not within a board's life.
  device::Counter counter(std::int64_t{1} << 32, 5e6, kSecond / 5);
  bool counts = false;
  while (!stop.stop_requested()) {
    const Nanoseconds begin = now();
    const auto value = board.energy();
    const Nanoseconds end = now();
    counts = counts || value;
    if (!value) {
      if (board.lost()) return;  // said by the board's other thread
      sleep_until(end + kMissingSensorPause, stop);
      continue;
    }
    if (const auto tick = watch.observe(begin, end, *value))
      shared.samples.add(run::Source::nvml_energy, uuid, tick->time,
                         counter.next(tick->time, tick->value), tick->half_width);
    if (watch.froze())
      shared.samples.diagnose(
          {Severity::warning, "record.counter_frozen",
           fmt::format("the energy counter of board {} stood still for seconds: its energy over "
                       "that time is unknown",
                       uuid)});
    sleep_until(watch.next_read(), stop);
  }
  if (!counts) shared.samples.diagnose(no_counter(uuid));
}

void Sampler::read_board(const device::Board& board, Shared& shared, const std::stop_token& stop) {
  const std::string& uuid = board.info().uuid;
  Samples& samples = shared.samples;
  if (const auto limit = board.power_limit())
    samples.add(run::Source::nvml_power_limit, uuid, now(), *limit);

  bool module = false;
  const auto fields = [&] {
    using enum run::Source;
    const Nanoseconds begin = now();
    const device::Board::Power power = board.power();
    const std::pair<run::Source, std::optional<std::int64_t>> values[] = {
        {nvml_power_instant, power.instant},     {nvml_power_average, power.average},
        {nvml_power_memory, power.memory},       {nvml_power_module, power.module},
        {nvml_sm_clock, board.sm_clock()},       {nvml_memory_clock, board.memory_clock()},
        {nvml_temperature, board.temperature()}, {nvml_throttle, board.throttle()}};
    const Nanoseconds time = begin + (now() - begin) / 2;
    for (const auto& [source, value] : values)
      if (value) samples.add(source, uuid, time, *value);
    if (power.module && !std::exchange(module, true))
      samples.diagnose({Severity::note, "record.module_energy",
                        fmt::format("board {} is part of a module: its energy counter may hold the "
                                    "processor and its memory too",
                                    uuid)});
    if (power.average || !board.lost()) return true;
    samples.diagnose(lost_board(uuid));
    return false;
  };

  RingWatch watch(read_clock(CLOCK_REALTIME));
  const auto ring = [&] {
    const Instant at = read_both_clocks();
    const auto fetch = watch.observe(at.monotonic, at.realtime, board.ring(watch.since_us()));
    for (const RingWatch::Sample& sample : fetch.samples)
      samples.add(run::Source::nvml_power_samples, uuid, sample.time, sample.milliwatts);
    if (fetch.lost)
      samples.diagnose({Severity::note, "record.ring_overrun",
                        fmt::format("board {} overwrote power samples before they were read: they "
                                    "are missing, the energy counter is not",
                                    uuid)});
    if (fetch.clock_set)
      samples.diagnose({Severity::note, "record.clock_set",
                        "the machine's time of day was set while recording: power samples around "
                        "that time are missing"});
    return true;
  };

  ForeignLoad others;
  std::optional<device::ProcessTree> tree;
  const auto users = [&] {
    const auto processes = board.processes();
    const pid_t root = shared.root;  // read after them: a program may begin between the two
    if (root == 0) {
      if (!tree) others.before(processes);
      return true;
    }
    if (!tree) tree.emplace(root);
    others.during(processes, [&](pid_t pid) { return tree->contains(pid); }, process_name);
    return true;
  };

  repeat({{kFieldPeriod, fields}, {kRingPeriod, ring, now() + kRingPeriod}, {kUsersPeriod, users}},
         stop);
  if (fields()) ring();
  if (const std::string foreign = others.described(); !foreign.empty())
    samples.diagnose({Severity::warning, "record.shared_board",
                      fmt::format("board {} was used by others too: {}; their work is in its "
                                  "energy: end them, or record on another board",
                                  uuid, foreign)});
}

void Sampler::read_amd(const device::AmdBoard& board, Shared& shared, const std::stop_token& stop) {
  const std::string& id = board.id();
  Samples& samples = shared.samples;
  device::CheckedCounter checked;
  bool counts = false, powered = false;
  const auto sensors = [&] {
    using enum run::Source;
    const Nanoseconds begin = now();
    const auto energy = board.energy();
    const auto power = board.power();
    const std::pair<run::Source, std::optional<std::int64_t>> values[] = {
        {amd_power, power},
        {amd_sm_clock, board.sm_clock()},
        {amd_memory_clock, board.memory_clock()},
        {amd_temperature, board.temperature()}};
    const Nanoseconds time = begin + (now() - begin) / 2;
    for (const auto& [source, value] : values)
      if (value) samples.add(source, id, time, *value);
    counts = counts || energy;
    powered = powered || power;
    if (!energy) return true;
    for (const auto& reading : checked.next(time, *energy, power))
      samples.add(amd_energy, id, reading.time,
                  device::Counter::Reading{reading.microjoules, reading.breaks});
    return true;
  };
  repeat({{kFieldPeriod, sensors}}, stop);

  const auto say = [&](std::uint64_t count, std::string_view what) {
    if (count > 0)
      samples.diagnose(
          {Severity::warning, "record.counter_doubted",
           fmt::format("the energy counter of board {} {}: those seconds are left out", id, what),
           count});
  };
  if (!powered)
    samples.diagnose({Severity::warning, "record.no_power",
                      fmt::format("board {} shows no power, as the second die of a package does: "
                                  "its energy is in the first die's",
                                  id)});
  else if (!counts)
    samples.diagnose(no_counter(id));
  say(checked.frozen(), "stood still while power was drawn");
  say(checked.impossible(), "counted what its power cannot be");
  if (powered) say(checked.unchecked(), "could not be held against its power");
}

void Sampler::read_host(const std::string& powercap, Shared& shared, const std::stop_token& stop) {
  device::Rapl rapl = device::Rapl::open(powercap);
  const auto source = [](device::Rapl::Kind kind) {
    switch (kind) {
      case device::Rapl::Kind::dram: return run::Source::rapl_dram;
      case device::Rapl::Kind::platform: return run::Source::rapl_psys;
      default: return run::Source::rapl_package;
    }
  };
  const auto counters = [&] {
    {
      const std::scoped_lock lock(shared.mutex);
      if (shared.tree) shared.read_processor_time();
    }
    const Nanoseconds time = now();
    if (const auto busy = device::machine_busy_time())
      shared.samples.add(run::Source::host_load, "", time, *busy);
    for (const auto& reading : rapl.read(now()))
      shared.samples.add(source(reading.domain.kind), reading.domain.channel, time,
                         reading.microjoules);
    return true;
  };
  repeat({{kHostPeriod, counters}}, stop);
  for (Diagnostic& note : rapl.notes()) shared.samples.diagnose(std::move(note));
}

void Sampler::read_hwmon(const std::string& root, Shared& shared, const std::stop_token& stop) {
  device::Hwmon hwmon = device::Hwmon::open(root);
  if (hwmon.empty()) return;
  const auto chips = [&] {
    const Nanoseconds begin = now();
    const auto readings = hwmon.read(begin);
    const Nanoseconds time = begin + (now() - begin) / 2;
    for (const auto& reading : readings) {
      if (reading.kind == device::Hwmon::Kind::power)
        shared.samples.add(run::Source::hwmon_power, reading.channel, time, reading.value.value);
      else
        shared.samples.add(run::Source::hwmon_energy, reading.channel, time, reading.value);
    }
    return true;
  };
  repeat({{kFieldPeriod, chips}}, stop);
}

void Sampler::read_program(const std::string& command, Shared& shared,
                           const std::stop_token& stop) {
  auto meter = device::MeterProgram::start(command);
  if (!meter) {
    shared.samples.diagnose({Severity::warning, "record.meter_died", meter.error().message});
    return;
  }
  OutsideReadings readings(command);
  const Nanoseconds begin = now();
  while (!stop.stop_requested() && !meter->ended()) {
    readings.add(meter->read(100 * kMillisecond), read_both_clocks());
    if (now() - begin >= kClockKnown) readings.give_on_our_clock(shared.samples);
  }
  readings.add(meter->stop(), read_both_clocks());
  readings.give_on_our_clock(shared.samples);
  for (Diagnostic& note : meter->notes()) shared.samples.diagnose(std::move(note));
}

void Sampler::read_files() {
  for (const std::string& path : meters_.outside) {
    if (!is_meter_file(path)) continue;
    const auto file = device::read_meter_file(path);
    if (!file) {
      shared_->samples.diagnose({Severity::warning, "record.meter_file", file.error().message});
      continue;
    }
    OutsideReadings readings(path);
    readings.add(file->samples, read_both_clocks());
    readings.give_between(begin_ - kClockMargin, now() + kClockMargin, shared_->samples);
    if (file->garbage > 0)
      shared_->samples.diagnose({Severity::warning, "record.meter_garbage",
                                 fmt::format("{} has lines that are no reading, the first of them "
                                             "line {}; they are left out",
                                             path, file->first_garbage),
                                 file->garbage});
  }
}

void Sampler::Shared::read_processor_time() {
  const Nanoseconds begin = now();
  const Nanoseconds used = tree->processor_time();
  samples.add(run::Source::host_cpu, "", begin + (now() - begin) / 2, used);
}

}  // namespace joulediff::lab
