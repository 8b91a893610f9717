#include "simulate/random_program.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace joulediff::simulate {
namespace {

Program program(Random& random, const BoardModel& board, std::vector<std::string>& traits) {
  Program result;
  const int operators = random.between(3, 12);
  const double room = board.cap_watts - board.static_watts;
  const double scale = random.lognormal(200e-6, 0.8);  // of a kernel: batch and model size
  const bool cold = random.chance(0.5), spread = random.chance(0.3), hungry = random.chance(0.2);
  for (int i = 0; i < operators; ++i) {
    Operator op;
    op.name = fmt::format("op_{}", i);
    op.seconds = std::clamp(random.lognormal(scale, 0.8), 5e-6, 20e-3);
    op.joules = op.seconds * room * random.uniform(0.1, hungry ? 1.5 : 0.95);
    op.kernels = random.chance(0.2) ? random.between(2, 3) : 1;
    op.calls = random.chance(0.2) ? random.between(2, 4) : 1;
    op.compute_bound = random.uniform(0, 1);
    if (cold) op.cold = random.uniform(0, 0.06);
    op.cold_time = op.cold / 2;
    if (spread) op.operand_spread = random.uniform(0, 0.03);
    result.operators.push_back(op);
  }
  if (cold) traits.push_back("cold caches");
  if (spread) traits.push_back("other operands");
  if (random.chance(0.15)) {
    result.operators[static_cast<std::size_t>(random.between(1, operators - 1))].stream = 1;
    traits.push_back("two streams");
  }
  if (random.chance(0.1)) {
    Operator all_reduce;
    all_reduce.name = "nccl_all_reduce";
    all_reduce.seconds = random.lognormal(scale, 0.5);
    all_reduce.joules = all_reduce.seconds * room * random.uniform(0.02, 0.2);
    result.operators.push_back(all_reduce);
    traits.push_back("communication");
  }
  result.layers = random.between(1, 12);
  result.launch_gap = random.lognormal(8e-6, 0.8);
  if (random.chance(0.3)) {
    result.launch_gap = scale * random.uniform(0.5, 3);
    traits.push_back("launch-bound");
  }
  result.pause = random.chance(0.7) ? random.lognormal(3e-3, 1) : 0;
  result.pause_jitter = random.uniform(0, 0.3);
  result.seconds = random.uniform(3, 10);
  return result;
}

BoardModel board(Random& random, std::vector<std::string>& traits) {
  BoardModel model;
  model.static_watts = random.uniform(40, 140);
  model.context_watts = model.static_watts * random.uniform(0.95, 1);
  model.idle_watts = model.context_watts * 0.6;
  model.cap_watts = random.uniform(300, 800);
  if (random.chance(0.6)) {
    model.leakage = random.uniform(0.001, 0.004);
    traits.push_back("leaks when warm");
  } else {
    model.leakage = 0;
  }
  model.kelvin_per_watt = random.uniform(25, 40) / model.cap_watts;
  model.thermal_seconds = random.uniform(8, 40);
  model.ramp = random.uniform(0, 0.003);
  model.overlap = random.uniform(-0.08, 0.08);
  return model;
}

// A step whose length is the sensor's period, or a simple part of it.
void lock(Program& program, Random& random) {
  double step = 0;
  for (const Operator& op : program.operators)
    step += program.layers * op.calls *
            (op.seconds * (1 + op.cold_time) + op.kernels * program.launch_gap);
  const double period = step < 0.018 ? 0.02 : 0.1;
  program.pause = std::ceil(1.05 * step / period) * period - step;
  program.pause_jitter = random.uniform(0, 0.001);
  program.gap_spread = 0;
}

void estrange(Draw& draw, Random& random) {
  CounterModel& counter = *draw.sensors.counter;
  const auto add = [&](std::string trait) { draw.traits.push_back(std::move(trait)); };
  const int number = random.between(1, 3);
  bool done[9] = {};
  const double horizon = 3 + draw.program.seconds + 2 * draw.passes.replay;
  for (int i = 0; i < number; ++i) {
    const int which = random.between(0, 8);
    if (std::exchange(done[which], true)) continue;
    switch (which) {
      case 0:
        counter.step = 0.02;
        counter.window = random.uniform(0.005, 0.018);
        counter.uneven = random.chance(0.5) ? 0.003 : 0;
        counter.jitter = 0.0025;
        add("counter samples");
        break;
      case 1:
        counter.step = 0.02;
        counter.window = random.uniform(0.005, 0.018);
        lock(draw.program, random);
        add("in lock");
        break;
      case 2:
        counter.lag = random.lognormal(0.1, 0.7);
        add("counter lags");
        break;
      case 3:
        counter.read_at = random.uniform(0, 0.5);
        add("read early");
        break;
      case 4:
        counter.freezes.push_back({random.uniform(1, horizon), random.uniform(0.3, 1.5), false});
        add("stands still");
        break;
      case 5:
        counter.freezes.push_back({random.uniform(1, horizon), random.uniform(0.3, 1.5), true});
        add("forgets");
        break;
      case 6:
        counter.resets.push_back(random.uniform(1, horizon));
        add("starts again");
        break;
      case 7:
        counter.quantum = random.uniform(0.5, 4);
        add("coarse");
        break;
      default:
        counter.offset = random.uniform(-20, 20);
        add("offset");
        break;
    }
  }
  if (random.chance(0.5)) counter.gain = random.normal(1, 0.03);
  for (PowerModel& power : draw.sensors.powers) {
    power.gain = counter.gain;
    power.offset = counter.offset;
  }
}

}  // namespace

Draw draw(std::uint64_t seed, bool strange) {
  Random random(seed * 0x9E3779B97F4A7C15u + (strange ? 1 : 0));
  Draw result;
  result.seed = seed;
  result.board = board(random, result.traits);
  result.program = program(random, result.board, result.traits);
  result.passes.replay = random.uniform(0.8, 3);
  result.passes.static_window = random.uniform(1.2, 2.5);
  CounterModel counter;
  counter.period = random.chance(0.8) ? 0.1 : random.uniform(0.02, 0.1);
  counter.jitter = random.uniform(0, 0.02) * counter.period;
  result.sensors.counter = counter;
  PowerModel instant{run::Source::nvml_power_instant, 0.1, 5e-4, 0.025};
  PowerModel average{run::Source::nvml_power_average, 0.1, 5e-4, 1};
  result.sensors.powers = {instant, average};
  if (strange) estrange(result, random);
  return result;
}

}  // namespace joulediff::simulate
