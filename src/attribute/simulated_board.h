// A board with a known truth for tests: its power is a sum of rectangles, its sensors are what the
// real ones are (a counter that ticks about every 100 ms and is seen late, a ring of 20 ms means).
// Shares no code with the estimators.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "run/model.h"

namespace joulediff::attribute {

constexpr Nanoseconds kMicrosecond = 1'000;
constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kSecond = 1'000'000'000;

// One operator of the program: what its single kernel takes and draws above static power.
struct Load {
  std::string name;
  Nanoseconds duration = 0;
  double watts = 0;
  bool replayed = true;
  bool view = false;
  std::uint32_t stream = 7;
  double joules() const { return watts * 1e-9 * static_cast<double>(duration); }
};

struct Program {
  std::vector<Load> loads;                  // one step, in order; equal names are equal operators
  Nanoseconds gap = 10 * kMicrosecond;      // between kernels
  Nanoseconds step_gap = 3 * kMillisecond;  // between steps
  std::size_t steps = 200;
  Nanoseconds replay = 2 * kSecond;  // of each distinct operator
  double static_watts = 130;
  double static_window = 2;   // seconds; 0: none
  double replay_factor = 1;   // watts in replay against those of the trace
  bool side_by_side = false;  // kernels of stream 13 start with their predecessor
  std::uint64_t seed = 1;
};

class SimulatedBoard {
 public:
  explicit SimulatedBoard(double static_watts, std::uint64_t seed)
      : static_watts_(static_watts), random_(seed) {}

  void draw(Nanoseconds begin, Nanoseconds end, double watts) {
    changes_.emplace_back(begin, watts);
    changes_.emplace_back(end, -watts);
  }

  // The sensors' series over [0, end].
  std::vector<run::Series> sense(Nanoseconds end) {
    if (!std::ranges::is_sorted(changes_)) std::ranges::sort(changes_);
    const std::vector<Nanoseconds> ring_times = regular(end, 20 * kMillisecond, 0);
    run::Series ring{run::Source::nvml_power_samples, {}, {}, {}};
    const std::vector<double> at_ring = joules_at(ring_times);
    for (std::size_t i = 1; i < ring_times.size(); ++i) {
      ring.time.push_back(ring_times[i]);
      ring.value.push_back(static_cast<std::int64_t>(1e3 * (at_ring[i] - at_ring[i - 1]) / 0.02));
    }
    const std::vector<Nanoseconds> ticks = regular(end, 100 * kMillisecond, kMillisecond);
    run::Series counter{run::Source::nvml_energy, {}, {}, {}};
    const std::vector<double> at_tick = joules_at(ticks);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      counter.time.push_back(ticks[i] + jitter(kSeenWithin));
      counter.value.push_back(5'000'000 + static_cast<std::int64_t>(1e3 * at_tick[i]));
      counter.uncertainty.push_back(kSeenWithin);
    }
    return {counter, ring};
  }

  Nanoseconds jitter(Nanoseconds within) {
    const double unit = static_cast<double>(random_() >> 11) * 0x1p-53;
    return static_cast<Nanoseconds>((2 * unit - 1) * static_cast<double>(within));
  }

 private:
  static constexpr Nanoseconds kSeenWithin = 3 * kMillisecond;

  std::vector<Nanoseconds> regular(Nanoseconds end, Nanoseconds period, Nanoseconds within) {
    std::vector<Nanoseconds> times;
    for (Nanoseconds t = period; t < end; t += period) times.push_back(t + jitter(within));
    return times;
  }

  // Energy since 0 at each of `times`, which rise.
  std::vector<double> joules_at(const std::vector<Nanoseconds>& times) const {
    std::vector<double> result;
    double joules = 0, watts = static_watts_;
    Nanoseconds now = 0;
    auto change = changes_.begin();
    for (const Nanoseconds time : times) {
      for (; change != changes_.end() && change->first <= time; ++change) {
        joules += watts * 1e-9 * static_cast<double>(change->first - now);
        now = change->first;
        watts += change->second;
      }
      joules += watts * 1e-9 * static_cast<double>(time - now);
      now = time;
      result.push_back(joules);
    }
    return result;
  }

  double static_watts_;
  std::mt19937_64 random_;
  std::vector<std::pair<Nanoseconds, double>> changes_;  // sorted once the play is over
};

struct Recording {
  run::Run run;
  Nanoseconds trace_begin = 0;
  Nanoseconds trace_end = 0;
};

// Plays the program's passes on a board and writes down what a recorder would.
class Player {
 public:
  explicit Player(const Program& program)
      : program_(program), board_(program.static_watts, program.seed) {}

  Recording play() {
    std::map<std::string, std::size_t> numbers;
    for (const Load& load : program_.loads) {
      const auto [found, fresh] = numbers.try_emplace(load.name, numbers.size());
      run::Operator op;
      op.name = load.name;
      op.view = load.view;
      op.signature = run::SignatureId(found->second);
      // More than caches hold: replays are as cold as the program.
      run::Tensor made;
      made.storage = recording_.run.tensors.size();
      made.shape = {16'000'000};
      made.stride = {1};
      made.fingerprint.dtype = value::DType::float32;
      op.outputs = {run::TensorId(recording_.run.tensors.size())};
      recording_.run.tensors.push_back(made);
      recording_.run.operators.push_back(op);
      if (!fresh) continue;
      recording_.run.signatures.push_back({load.name});
      recording_.run.kernels.push_back({load.name + "_kernel", {1, 1, 1}, {32, 1, 1}, {}});
    }
    recording_.run.manifest.device = "simulated";
    now_ = kSecond;
    for (std::uint32_t step = 0; step < 3; ++step) play_step(block_.order_kernels, step, true);
    now_ += kSecond;
    recording_.trace_begin = now_;
    for (std::size_t step = 0; step < program_.steps; ++step) {
      const Nanoseconds begin = now_;
      play_step(block_.trace_kernels, 0, false);
      block_.steps.push_back({run::Pass::trace, static_cast<std::uint32_t>(step), begin, now_});
    }
    recording_.trace_end = now_;
    now_ += kSecond;
    play_floor();
    play_replays();
    block_.end = now_ + kSecond;
    block_.series = board_.sense(block_.end);
    recording_.run.blocks.push_back(block_);
    return recording_;
  }

 private:
  void play_step(run::KernelSeries& series, std::uint32_t step, bool known) {
    Nanoseconds before = now_;
    for (std::size_t i = 0; i < program_.loads.size(); ++i) {
      const Load& load = program_.loads[i];
      if (load.duration == 0) continue;
      const bool beside = program_.side_by_side && load.stream == 13;
      const Nanoseconds start = beside ? before : now_;
      const Nanoseconds end = start + load.duration;
      series.kernel.push_back(run::KernelId(recording_.run.operators[i].signature.index()));
      series.start.push_back(start);
      series.duration.push_back(load.duration);
      series.stream.push_back(load.stream);
      series.op.push_back(known ? run::OperatorId(i) : run::OperatorId());
      series.step.push_back(step);
      board_.draw(start, end, load.watts);
      before = start;
      now_ = std::max(now_, end + program_.gap);
    }
    now_ += program_.step_gap + board_.jitter(program_.step_gap / 4);
  }

  void play_floor() {
    if (program_.static_window == 0) return;
    const auto length = static_cast<Nanoseconds>(program_.static_window * 1e9);
    block_.replays.push_back({run::ReplayKind::static_power, {}, now_, now_ + length, 1});
    now_ += length + 100 * kMillisecond;
  }

  void play_replays() {
    std::vector<bool> done(recording_.run.signatures.size());
    for (std::size_t i = 0; i < program_.loads.size(); ++i) {
      const Load& load = program_.loads[i];
      const run::SignatureId signature = recording_.run.operators[i].signature;
      if (!load.replayed || load.duration == 0 || done[signature.index()]) continue;
      done[signature.index()] = true;
      const Nanoseconds stop = now_ + program_.replay;
      while (now_ < stop) {  // chunks of about 200 ms
        const Nanoseconds begin = now_;
        std::uint64_t count = 0;
        for (; now_ < begin + 200 * kMillisecond; ++count) {
          board_.draw(now_, now_ + load.duration, load.watts * program_.replay_factor);
          now_ += load.duration + 2 * kMicrosecond;
        }
        block_.replays.push_back({run::ReplayKind::op, signature, begin, now_, count});
        now_ += kMillisecond;
      }
      now_ += 150 * kMillisecond;
    }
  }

  Program program_;
  SimulatedBoard board_;
  Recording recording_;
  run::Block block_;
  Nanoseconds now_ = 0;
};

}  // namespace joulediff::attribute
