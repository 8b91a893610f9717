// Plays the passes of a recording in the order of the recorder's: order, trace, the floors, replay.
// Kernels start in the order of the program: each when its stream is free, and not before its
// predecessor in the program has begun. In replay an operator runs back to back, in graphs of some
// milliseconds; within one of them the mean power stands for its executions, which no sensor tells
// apart.
#include "simulate/recording.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace joulediff::simulate {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr double kGraph = 4e-3;  // seconds of executions in one launch of a graph
constexpr double kChunk = 0.25;  // seconds of executions between two questions to the launcher

// A call in a step.
struct Call {
  std::size_t op = 0;
  run::OperatorId id;
};

class Player {
 public:
  Player(const Program& program, const BoardModel& board, const Sensors& sensors,
         const Passes& passes, std::uint64_t seed)
      : program_(program),
        sensors_(sensors),
        passes_(passes),
        board_(board, kSecond),
        random_(seed),
        books_(program.operators.size()) {
    for (const Operator& op : program.operators)
      operands_.push_back(random_.normal(1, op.operand_spread));
  }

  Recording play() {
    describe();
    block_.begin = board_.now();
    pass_time(500 * kMillisecond);
    board_.open_context();
    pass_time(700 * kMillisecond);
    for (int step = 0; step < passes_.order_steps; ++step)
      play_step(block_.order_kernels, run::Pass::order, static_cast<std::uint32_t>(step));
    pass_time(300 * kMillisecond);
    trace();
    pass_time(500 * kMillisecond);
    floors();
    replays();
    pass_time(kSecond);
    block_.end = board_.now();
    finish();
    return std::move(recording_);
  }

 private:
  void pass_time(Nanoseconds length) { board_.advance(board_.now() + length); }

  void describe() {
    run::Run& run = recording_.run;
    run.manifest.label = program_.name;
    run.manifest.device = board_.model().name + " (simulated)";
    run.manifest.facts["simulated"] = "true";
    for (const Operator& op : program_.operators) {
      run.signatures.push_back({op.name});
      first_kernel_.push_back(run.kernels.size());
      for (int k = 0; k < op.kernels; ++k)
        if (k < kDistinctKernels)
          run.kernels.push_back(
              {fmt::format("{}_kernel_{}", op.name, k), {1, 1, 1}, {32, 1, 1}, {}});
    }
    for (int layer = 0; layer < program_.layers; ++layer)
      for (std::size_t op = 0; op < program_.operators.size(); ++op)
        for (int call = 0; call < program_.operators[op].calls; ++call) {
          calls_.push_back({op, run::OperatorId(run.operators.size())});
          recording_.origin.push_back(op);
          run::Operator& one = run.operators.emplace_back();
          one.name = program_.operators[op].name;
          one.signature = run::SignatureId(op);
        }
  }

  void play_step(run::KernelSeries& series, run::Pass pass, std::uint32_t step) {
    const bool known = pass == run::Pass::order;
    const Nanoseconds begin = board_.now();
    std::map<int, Nanoseconds> free;  // by stream
    Nanoseconds before = begin;       // when the predecessor began
    for (const Call& call : calls_) {
      const Operator& op = program_.operators[call.op];
      // One draw for the call: its kernels work on the same operands.
      const double operands = random_.normal(1, op.operand_spread);
      const double joules = op.joules * (1 + op.cold) * std::max(0.0, operands) / op.kernels;
      for (int k = 0; k < op.kernels; ++k) {
        Nanoseconds& ready = free.try_emplace(op.stream, begin).first->second;
        const Nanoseconds start = std::max(ready, before);
        board_.advance(start);
        const double length =
            op.seconds / op.kernels * (1 + op.cold_time) * board_.stretch(op.compute_bound);
        board_.launch({length, joules * board_.energy_factor() / length, call.op,
                       op.name.starts_with("nccl")});
        const auto duration = std::max<Nanoseconds>(1, std::llround(1e9 * length));
        series.kernel.emplace_back(first_kernel_[call.op] +
                                   static_cast<std::size_t>(std::min(k, kDistinctKernels - 1)));
        series.start.push_back(start);
        series.duration.push_back(duration);
        series.stream.push_back(static_cast<std::uint32_t>(7 + op.stream));
        series.op.push_back(known ? call.id : run::OperatorId());
        series.step.push_back(known ? step : 0);
        if (!known) seconds_[call.op] += to_seconds(duration).value;
        before = start;
        ready = start + duration + launch_gap();
      }
    }
    Nanoseconds end = board_.busy_until();
    for (const auto& [stream, ready] : free) end = std::max(end, ready);
    const double jitter = random_.uniform(-program_.pause_jitter, program_.pause_jitter);
    end += std::llround(1e9 * program_.pause * (1 + jitter));
    board_.advance(end);
    block_.steps.push_back({pass, step, begin, end, {}});
  }

  Nanoseconds launch_gap() {
    if (program_.launch_gap <= 0) return 0;
    return std::llround(1e9 * random_.lognormal(program_.launch_gap, program_.gap_spread));
  }

  void trace() {
    seconds_.assign(program_.operators.size(), 0);
    board_.keep(&books_);
    const Nanoseconds begin = board_.now();
    for (std::uint32_t step = 0; board_.now() - begin < std::llround(1e9 * program_.seconds);
         ++step)
      play_step(block_.trace_kernels, run::Pass::trace, step);
    board_.keep(nullptr);
    recording_.truth.steps = static_cast<std::size_t>(
        std::ranges::count(block_.steps, run::Pass::trace, &run::Step::pass));
    windows_.push_back({"trace", begin, board_.now(), 0});
  }

  void floors() {
    if (passes_.static_window > 0) {
      const Nanoseconds begin = board_.now();
      const auto spins = static_cast<std::uint64_t>(passes_.static_window * 1e3);
      for (std::uint64_t i = 0; i < spins; ++i) {
        board_.launch({1e-3, 0, Launch::kNone, false});
        board_.drain();
      }
      floor_window(run::ReplayKind::static_power, "static", begin, spins);
    }
    if (passes_.idle_window > 0) {
      const Nanoseconds begin = board_.now();
      pass_time(std::llround(1e9 * passes_.idle_window));
      floor_window(run::ReplayKind::idle, "idle", begin,
                   static_cast<std::uint64_t>(passes_.idle_window * 1e3));
    }
  }

  void floor_window(run::ReplayKind kind, std::string what, Nanoseconds begin,
                    std::uint64_t count) {
    block_.replays.push_back({kind, {}, begin, board_.now(), std::max<std::uint64_t>(1, count)});
    windows_.push_back({std::move(what), begin, board_.now(), 0});
    pass_time(20 * kMillisecond);
  }

  // The costliest in time until their share is reached.
  std::vector<std::size_t> replayed() const {
    std::vector<std::size_t> order(program_.operators.size());
    double rest = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      rest += seconds_[i];
    }
    rest *= passes_.replayed_share;
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(-seconds_[i], i); });
    std::size_t count = 0;
    while (count < order.size() && rest > 0) rest -= seconds_[order[count++]];
    order.resize(count);
    return order;
  }

  void replays() {
    if (passes_.replay <= 0) return;
    for (const std::size_t op : replayed()) {
      is_replayed_.resize(program_.operators.size());
      is_replayed_[op] = true;
      const Nanoseconds begin = board_.now(), stop = begin + std::llround(1e9 * passes_.replay);
      while (board_.now() < stop) {
        const Nanoseconds from = board_.now();
        const std::uint64_t count = chunk(op);
        block_.replays.push_back(
            {run::ReplayKind::op, run::SignatureId(op), from, board_.now(), count});
        pass_time(kMillisecond);
      }
      windows_.push_back(
          {"replay of " + program_.operators[op].name, begin, board_.now() - kMillisecond, 0});
      pass_time(150 * kMillisecond);
    }
  }

  // Warm in cache, on one set of operands, with next to no gaps.
  std::uint64_t chunk(std::size_t index) {
    const Operator& op = program_.operators[index];
    const Nanoseconds stop = board_.now() + std::llround(1e9 * kChunk);
    const auto copies = static_cast<std::uint64_t>(std::max(1.0, std::round(kGraph / op.seconds)));
    std::uint64_t count = 0;
    for (; board_.now() < stop; count += copies) {
      const double each = op.seconds * board_.stretch(op.compute_bound) + passes_.replay_gap;
      const double joules = op.joules * std::max(0.0, operands_[index]) * board_.energy_factor();
      board_.launch({each * static_cast<double>(copies), joules / each, Launch::kNone, false});
      board_.drain();
    }
    return count;
  }

  void finish() {
    Truth& truth = recording_.truth;
    History& history = recording_.history;
    history = {board_.waveform(), board_.states(), board_.model().ramp, board_.model().cap_watts};
    const auto steps = static_cast<double>(truth.steps);
    double sum = 0;
    for (std::size_t i = 0; i < kLines; ++i) sum += truth.lines[i] = books_.lines[i] / steps;
    for (WindowTruth& window : windows_)
      window.joules = history.waveform.joules(window.begin, window.end, {history.ramp, 0});
    const WindowTruth& trace = windows_.front();
    truth.total = trace.joules / steps;
    truth.held_back = truth.total - sum;
    truth.step = to_seconds(trace.end - trace.begin).value / steps;
    truth.busy = books_.busy / steps;
    truth.gain = sensors_.counter ? sensors_.counter->gain : 1;
    is_replayed_.resize(program_.operators.size());
    for (std::size_t i = 0; i < program_.operators.size(); ++i)
      truth.operators.push_back({program_.operators[i].name,
                                 static_cast<double>(program_.layers) * program_.operators[i].calls,
                                 seconds_[i] / steps, books_.dynamic[i] / steps,
                                 books_.total[i] / steps, is_replayed_[i]});
    truth.windows = std::move(windows_);
    Random sensing = random_.fork();
    block_.series = sense(history, sensors_, sensing);
    recording_.run.blocks.push_back(std::move(block_));
  }

  // Beyond so many the kernels of one call have the same name.
  static constexpr int kDistinctKernels = 8;

  const Program& program_;
  const Sensors& sensors_;
  const Passes& passes_;
  Board board_;
  Random random_;
  Books books_;
  std::vector<double> operands_;  // those of the replay, by operator
  std::vector<Call> calls_;
  std::vector<std::size_t> first_kernel_;
  std::vector<double> seconds_ = std::vector<double>(program_.operators.size());
  std::vector<bool> is_replayed_;
  std::vector<WindowTruth> windows_;
  Recording recording_;
  run::Block block_;
};

}  // namespace

std::string_view name(Line line) {
  switch (line) {
    case Line::operators: return "operators";
    case Line::static_busy: return "static";
    case Line::launch_gap: return "launch_gap";
    case Line::waiting: return "waiting";
    case Line::idle: return "idle";
    case Line::overlap: return "overlap";
  }
  return "?";
}

Recording record(const Program& program, const BoardModel& board, const Sensors& sensors,
                 const Passes& passes, std::uint64_t seed) {
  return Player(program, board, sensors, passes, seed).play();
}

}  // namespace joulediff::simulate
