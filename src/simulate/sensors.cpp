// Three stages, each on its own clock, as in the real thing: the sensor takes means over windows of
// the board's draw, the driver publishes them when it does, and a sampler reads what is published
// when it comes by. What aliases, lags or gets lost, does so between two of them.
#include "simulate/sensors.h"

#include <algorithm>
#include <cmath>

namespace joulediff::simulate {
namespace {

Nanoseconds ns(double seconds) {
  return std::llround(1e9 * seconds);
}

// Values that appear at instants.
struct Published {
  std::vector<Nanoseconds> time;
  std::vector<double> value;
};

std::vector<Nanoseconds> regular(const Waveform& waveform, double period, double jitter,
                                 Random& random) {
  std::vector<Nanoseconds> times;
  double at = random.uniform(0, period);
  for (; waveform.begin() + ns(at) < waveform.end(); at += period)
    times.push_back(waveform.begin() + ns(at + random.uniform(-jitter, jitter)));
  std::ranges::sort(times);
  return times;
}

std::vector<Nanoseconds> shifted(std::vector<Nanoseconds> times, double seconds) {
  for (Nanoseconds& time : times) time += ns(seconds);
  return times;
}

// Joules in the window before each of `times`, over its length.
std::vector<double> means(const History& history, const std::vector<Nanoseconds>& times,
                          double window, double delay, double lag) {
  const Response response{history.ramp, lag};
  const double length = std::max(window, 1e-6);
  const auto to = history.waveform.joules_at(shifted(times, -delay), response);
  const auto from = history.waveform.joules_at(shifted(times, -delay - length), response);
  std::vector<double> result(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) result[i] = (to[i] - from[i]) / length;
  return result;
}

Published published(const History& history, const PowerModel& model, Random& random) {
  Published result;
  result.time = regular(history.waveform, model.period, model.jitter, random);
  result.value = means(history, result.time, model.window, model.delay, model.lag);
  for (double& watts : result.value) {
    watts = model.gain * watts + model.offset + random.normal(0, model.noise);
    watts = std::max(0.0, std::round(watts / model.quantum) * model.quantum);
  }
  return result;
}

std::int64_t milli(double value) {
  return std::llround(1e3 * value);
}

// When a sampler comes by: never on the dot.
std::vector<Nanoseconds> visits(const Waveform& waveform, double every, Random& random) {
  std::vector<Nanoseconds> times;
  for (double at = every; waveform.begin() + ns(at) < waveform.end();
       at += every + random.lognormal(1e-4, 1))
    times.push_back(waveform.begin() + ns(at));
  return times;
}

run::Series polled(const Published& sensor, run::Source source,
                   const std::vector<Nanoseconds>& visits) {
  run::Series series;
  series.source = source;
  std::size_t seen = 0;
  for (const Nanoseconds visit : visits) {
    while (seen < sensor.time.size() && sensor.time[seen] <= visit) ++seen;
    if (seen == 0) continue;
    series.time.push_back(visit);
    series.value.push_back(milli(sensor.value[seen - 1]));
  }
  return series;
}

run::Series fetched(const Published& sensor, const RingModel& ring, const Waveform& waveform,
                    Random& random) {
  run::Series series;
  series.source = ring.power.source;
  std::size_t next = 0;
  for (double at = ring.fetch_every;; at += ring.fetch_every + random.uniform(0, ring.late)) {
    const Nanoseconds fetch = std::min(waveform.begin() + ns(at), waveform.end());
    const auto end = static_cast<std::size_t>(std::ranges::upper_bound(sensor.time, fetch) -
                                              sensor.time.begin());
    const auto held = static_cast<std::size_t>(ring.capacity);
    for (next = std::max(next, end - std::min(end, held)); next < end; ++next) {
      series.time.push_back(sensor.time[next]);
      series.value.push_back(milli(sensor.value[next]));
    }
    if (fetch == waveform.end()) return series;
  }
}

// The means that a counter adds, each at its step.
Published samples(const History& history, const CounterModel& counter, Random& random) {
  Published result;
  const Waveform& waveform = history.waveform;
  constexpr int kRound = 5, kLate = 3;
  double at = random.uniform(0, counter.step);
  for (int i = 0; waveform.begin() + ns(at) < waveform.end(); ++i, at += counter.step)
    result.time.push_back(waveform.begin() + ns(at + (i % kRound == kLate ? counter.uneven : 0)));
  result.value = means(history, result.time, counter.window, 0, counter.lag);
  return result;
}

// What it has added up at each of them.
Published added_up(const History& history, const CounterModel& counter, Random& random) {
  Published result = samples(history, counter, random);
  Nanoseconds before = history.waveform.begin();
  double joules = 0;
  for (std::size_t i = 0; i < result.value.size(); ++i) {
    joules += result.value[i] * to_seconds(result.time[i] - before).value;
    before = result.time[i];
    result.value[i] = joules;
  }
  return result;
}

void freeze(const Freeze& freeze, Nanoseconds begin, Ticks& ticks) {
  const Nanoseconds from = begin + ns(freeze.at), to = from + ns(freeze.length);
  double held = -1, forgotten = 0;
  for (std::size_t i = 0; i < ticks.time.size(); ++i) {
    if (ticks.time[i] < from) {
      held = ticks.joules[i];
    } else if (ticks.time[i] < to && held >= 0) {
      if (freeze.forgets) forgotten = ticks.joules[i] - held;
      ticks.joules[i] = held;
    } else {
      ticks.joules[i] -= forgotten;
    }
  }
}

// Reads until a tick shows, rests until shortly before the next, and reads again. Where the counter
// goes back, what follows is another series.
std::vector<run::Series> watched(const Ticks& ticks, const CounterModel& counter,
                                 const Waveform& waveform, Random& random) {
  constexpr double kRest = 0.85;
  constexpr Nanoseconds kPause = 1'000'000;
  std::vector<run::Series> result(1);
  std::size_t shown = 0;  // ticks up to now
  std::optional<std::int64_t> last;
  std::int64_t wrapped = 0;
  Nanoseconds last_end = 0;
  for (Nanoseconds now = waveform.begin() + 1; now < waveform.end();) {
    const double took = std::min(counter.read_longest, random.lognormal(counter.read_median, 0.35));
    const Nanoseconds end = now + ns(took), taken = now + ns(counter.read_at * took);
    while (shown < ticks.time.size() && ticks.time[shown] <= taken) ++shown;
    if (shown == 0) {
      now = end + kPause;
      continue;
    }
    std::int64_t value = milli(ticks.joules[shown - 1]) + wrapped;
    const std::int64_t round = milli(counter.wraps_at);
    if (round > 0 && last && *last - value > round / 2) {
      wrapped += round;
      value += round;
    }
    const bool moved = last && value != *last;
    if (moved) {
      if (value < *last && !result.back().time.empty()) result.emplace_back();
      run::Series& series = result.back();
      series.time.push_back(last_end + (end - last_end) / 2);
      series.value.push_back(value);
      series.uncertainty.push_back((end - last_end) / 2);
    }
    const Nanoseconds next = end + kPause;
    now = moved ? std::max(next, result.back().time.back() + ns(kRest * counter.period - took))
                : next;
    last = value;
    last_end = end;
  }
  std::erase_if(result, [](const run::Series& series) { return series.time.size() < 2; });
  for (run::Series& series : result) series.source = run::Source::nvml_energy;
  return result;
}

// Clocks, temperature and limits: nvmlClocksEventReasons has 0x4 for the power limit, 0x20 for
// heat.
void read_states(const History& history, const std::vector<Nanoseconds>& visits,
                 std::vector<run::Series>& all) {
  run::Series clock{run::Source::nvml_sm_clock, visits, {}, {}};
  run::Series celsius{run::Source::nvml_temperature, visits, {}, {}};
  run::Series limits{run::Source::nvml_throttle, visits, {}, {}};
  run::Series cap{run::Source::nvml_power_limit, visits, {}, {}};
  std::size_t shown = 0;
  for (const Nanoseconds visit : visits) {
    while (shown + 1 < history.states.size() && history.states[shown + 1].time <= visit) ++shown;
    const State& state = history.states[shown];
    constexpr double kClockStep = 15;
    clock.value.push_back(std::llround(state.mhz / kClockStep) * 15);
    celsius.value.push_back(std::llround(state.celsius));
    limits.value.push_back((state.capped ? 0x4 : 0) | (state.hot ? 0x20 : 0));
    cap.value.push_back(milli(history.cap_watts));
  }
  for (run::Series* series : {&clock, &celsius, &limits, &cap}) all.push_back(std::move(*series));
}

}  // namespace

Ticks ticks(const History& history, const CounterModel& counter, Random& random) {
  Ticks result;
  const Waveform& waveform = history.waveform;
  if (counter.step > 0) {
    // It ticks with a step, a little later.
    const Published steps = added_up(history, counter, random);
    const auto each = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::lround(counter.period / counter.step)));
    for (std::size_t i = each - 1; i < steps.time.size(); i += each) {
      result.time.push_back(steps.time[i] + ns(random.uniform(0, 2 * counter.jitter)));
      result.joules.push_back(steps.value[i]);
    }
  } else {
    result.time = regular(waveform, counter.period, counter.jitter, random);
    result.joules = waveform.joules_at(result.time, {history.ramp, counter.lag});
  }
  for (std::size_t i = 0; i < result.time.size(); ++i) {
    const double seconds = to_seconds(result.time[i] - waveform.begin()).value;
    result.joules[i] = counter.begin + counter.gain * result.joules[i] + counter.offset * seconds;
    // An offset below what the board draws adds nothing; it takes nothing away.
    if (i > 0) result.joules[i] = std::max(result.joules[i], result.joules[i - 1]);
  }
  for (const Freeze& one : counter.freezes) freeze(one, waveform.begin(), result);
  for (const double reset : counter.resets) {
    const auto first = static_cast<std::size_t>(
        std::ranges::lower_bound(result.time, waveform.begin() + ns(reset)) - result.time.begin());
    if (first >= result.time.size()) continue;
    const double before = first > 0 ? result.joules[first - 1] : counter.begin;
    for (std::size_t i = first; i < result.time.size(); ++i) result.joules[i] -= before;
  }
  for (double& joules : result.joules) {
    if (counter.wraps_at > 0) joules = std::fmod(joules, counter.wraps_at);
    joules = std::floor(joules / counter.quantum) * counter.quantum;
  }
  return result;
}

std::vector<run::Series> sense(const History& history, const Sensors& sensors, Random& random) {
  std::vector<run::Series> all;
  Random of_counter = random.fork(), own = random.fork();
  Random same = of_counter;  // what draws the same samples once more
  if (sensors.counter)
    all = watched(ticks(history, *sensors.counter, of_counter), *sensors.counter, history.waveform,
                  of_counter);
  const auto times = visits(history.waveform, sensors.poll_every, own);
  for (const PowerModel& power : sensors.powers)
    all.push_back(polled(published(history, power, own), power.source, times));
  if (sensors.ring) {
    const bool shared = sensors.ring->of_counter && sensors.counter && sensors.counter->step > 0;
    all.push_back(fetched(shared ? samples(history, *sensors.counter, same)
                                 : published(history, sensors.ring->power, own),
                          *sensors.ring, history.waveform, own));
  }
  read_states(history, times, all);
  return all;
}

}  // namespace joulediff::simulate
