#include <algorithm>
#include <cmath>

#include "rules/mlperf_rules.h"

namespace joulediff::rules {
namespace {

meter::Readings readings(const run::PowerSeries& series) {
  return {series.time, series.watts};
}

// An energy that can be: of readings of 9.91e37 or below 0 none is known.
std::optional<Joules> possible(double joules) {
  constexpr double kMost = 1e18;
  if (!(joules > 0 && joules <= kMost)) return {};
  return Joules(joules);
}

std::optional<double> ratio(std::optional<double> x, std::optional<double> y) {
  if (!x || !y || !(*y > 0)) return {};
  return *x / *y;
}

// The work of the window, and how fast it was done.
void set_work(const run::LoadGenLog& log, Score& score) {
  const bool streams = log.scenario == "SingleStream" || log.scenario == "MultiStream";
  if (streams) {
    score.unit = "stream";
    score.metric = "mJ/stream";
    score.units = log.query_count;
    score.rate =
        ratio(score.units, score.window ? std::optional(score.window->value) : std::nullopt);
    return;
  }
  score.unit = log.tokens_per_second ? "token" : "sample";
  score.metric = score.unit + "s/J";
  score.rate = log.tokens_per_second    ? log.tokens_per_second
               : log.samples_per_second ? log.samples_per_second
                                        : log.completed_per_second;
  if (score.rate && score.window) score.units = *score.rate * score.window->value;
}

}  // namespace

std::optional<Measured> measured(const run::InferencePart& part) {
  const run::LoadGenLog& log = part.loadgen;
  if (!log.power_begin || !log.power_end) return {};
  const auto total = meter::integrate(readings(part.power.total), *log.power_begin, *log.power_end);
  if (!total) return {};
  Measured result{*log.power_begin, *log.power_end, *total, total->trapezoid, total->bridged};
  if (part.power.analyzers.size() < 2) return result;
  result.trapezoid = result.bridged = Joules(0);
  for (const run::PowerSeries& analyzer : part.power.analyzers) {
    const auto one = meter::integrate(readings(analyzer), result.begin, result.end);
    if (!one) return {};
    result.trapezoid += one->trapezoid;
    result.bridged += one->bridged;
  }
  return result;
}

Score inference_score(const run::Inference& inference) {
  Score score;
  const run::LoadGenLog& log = inference.testing.loadgen;
  const std::optional<Measured> m = measured(inference.testing);
  if (m) score.window = to_seconds(m->end - m->begin);
  set_work(log, score);
  if (const auto ranging = measured(inference.ranging))
    score.ranging_watts = ranging->total.mean_positive;
  if (!m || !possible(m->bridged.value) || !possible(m->total.mean_positive.value)) return score;
  const Seconds window = *score.window;
  score.official_watts = m->total.mean_positive;
  score.official_joules = m->total.mean_positive * window;
  score.trapezoid = m->trapezoid;
  if (m->total.nonpositive > 0) score.bridged = m->bridged;
  if (m->total.invalid() > 0) score.standing = Standing::estimated;
  const Joules mean = m->total.mean * window;
  if (m->total.nonpositive > 0)
    score.parts.push_back({fmt::format("{} of {} readings at or below 0 W are left out",
                                       m->total.nonpositive, m->total.inside),
                           *score.official_joules - mean});
  if (inference.testing.power.analyzers.size() > 1)
    score.parts.push_back(
        {"analyzers are added up by line, without their signs", mean - m->trapezoid});
  else
    score.parts.push_back({"a mean of readings, not over time", mean - m->trapezoid});
  if (!score.units || !(*score.units > 0)) return score;
  const bool per_joule = score.metric.ends_with("/J");
  const auto metric = [&](Joules joules) {
    return per_joule ? *score.units / joules.value : 1000 * joules.value / *score.units;
  };
  // The official table divides the rate by the watts, and not the work by the joules.
  score.official =
      per_joule ? *score.rate / score.official_watts->value : metric(*score.official_joules);
  score.ours = metric(*score.trapezoid);
  score.windows.push_back(
      {"testing", window, score.official_joules, score.trapezoid, *score.units});
  return score;
}

namespace {

// Sum of each reading times the time since the one before: what the official summariser does.
double rectangles(const run::PowerSeries& series, Nanoseconds from, Nanoseconds begin,
                  Nanoseconds end) {
  double joules = 0;
  Nanoseconds last = from;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Nanoseconds time = series.time[i];
    const Nanoseconds span = std::min(time, end) - std::max(last, begin);
    if (span > 0 && std::isfinite(series.watts[i]))
      joules += series.watts[i] * to_seconds(span).value;
    last = time;
  }
  return joules;
}

}  // namespace

TrainingEnergy training_energy(const run::TrainingRun& run) {
  TrainingEnergy energy;
  if (!run.start || !run.stop || *run.stop <= *run.start) return energy;
  const Seconds ttt = to_seconds(*run.stop - *run.start);
  energy.time_to_train = ttt;
  double prorated = 0, inside = 0, trapezoid = 0, log = 0;
  bool whole = !run.meters.empty(), covered = whole;
  for (const run::TrainingMeter& meter : run.meters) {
    const double efficiency = meter.efficiency.value_or(1);
    if (meter.interconnect_watts) energy.estimated += Watts(*meter.interconnect_watts) * ttt;
    if (meter.series.size() == 0) {
      // A switch may be there as an estimate alone.
      if (!meter.interconnect_watts) whole = covered = false;
      continue;
    }
    const Nanoseconds first = meter.start.value_or(meter.series.time.front());
    const bool stopped = meter.start && meter.stop && *meter.stop > *meter.start;
    const Nanoseconds last = stopped ? *meter.stop : meter.series.time.back();
    if (last <= first) {
      whole = false;
    } else if (!meter.is_switch) {
      // The summariser reads of a switch nothing but the estimate.
      prorated += efficiency * rectangles(meter.series, first, first, meter.series.time.back()) *
                  ttt.value / to_seconds(last - first).value;
      inside += efficiency * rectangles(meter.series, first, *run.start, *run.stop);
    }
    log = std::max(log, to_seconds(last - first).value);
    if (const auto integral = meter::integrate(readings(meter.series), *run.start, *run.stop))
      trapezoid += efficiency * integral->trapezoid.value;
    else
      covered = false;
  }
  const double estimated = energy.estimated.value;
  if (whole) energy.prorated = possible(prorated + estimated);
  if (whole) energy.rectangles_in_window = possible(inside + estimated);
  if (covered) energy.trapezoid = possible(trapezoid + estimated);
  if (log > 0) energy.log = Seconds(log);
  return energy;
}

std::vector<std::size_t> olympic(const std::vector<TrainingEnergy>& energies) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < energies.size(); ++i)
    if (energies[i].time_to_train) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return *energies[i].time_to_train; });
  if (order.size() < 3) return order;
  return {order.begin() + 1, order.end() - 1};
}

Score training_score(const run::Training& training) {
  Score score;
  score.metric = "J to train";
  score.unit = "training";
  std::vector<TrainingEnergy> energies;
  for (const run::TrainingRun& run : training.runs) energies.push_back(training_energy(run));
  for (std::size_t i = 0; i < energies.size(); ++i)
    if (energies[i].time_to_train)
      score.windows.push_back({training.runs[i].name, *energies[i].time_to_train,
                               energies[i].prorated, energies[i].trapezoid, 1});
  const std::vector<std::size_t> counted = olympic(energies);
  if (counted.empty()) return score;
  double seconds = 0, estimated = 0;
  for (const std::size_t i : counted) {
    seconds += energies[i].time_to_train->value;
    estimated += energies[i].estimated.value;
  }
  // The mean of the runs that count; unknown where one of them is, or the factor.
  const double scale = training.scaling_factor.value_or(1) / static_cast<double>(counted.size());
  const auto mean = [&](std::optional<Joules> TrainingEnergy::* which) {
    double sum = 0;
    for (const std::size_t i : counted)
      sum += (energies[i].*which) ? (energies[i].*which)->value : std::nan("");
    return possible(sum * scale);
  };
  score.official_joules = mean(&TrainingEnergy::prorated);
  score.trapezoid = mean(&TrainingEnergy::trapezoid);
  if (score.official_joules) score.official = score.official_joules->value;
  if (score.trapezoid) score.ours = score.trapezoid->value;
  const auto held = mean(&TrainingEnergy::rectangles_in_window);
  score.window = Seconds(seconds / static_cast<double>(counted.size()));
  score.units = 1;
  if (estimated > 0) score.standing = Standing::estimated;
  if (!score.official_joules || !score.trapezoid || !held) return score;
  score.official_watts =
      *score.official_joules / *score.window / training.scaling_factor.value_or(1);
  score.parts.push_back({"mean power of the whole log, charged for the time of the run",
                         *score.official_joules - *held});
  score.parts.push_back(
      {"each reading held until the next, and not joined to it", *held - *score.trapezoid});
  return score;
}

namespace {

// Energy between two instants of the trace. The runner takes whole samples, by rounding; exactly,
// the samples at the edges count by their share.
double microjoules(const run::Tiny& tiny, const run::TinyWindow& window, bool exactly) {
  const double from = window.begin * *tiny.rate, to = window.end * *tiny.rate;
  const auto size = static_cast<double>(tiny.microjoules.size());
  const double begin = std::clamp(exactly ? from : std::nearbyint(from), 0.0, size);
  const double end = std::clamp(exactly ? to : std::nearbyint(to), 0.0, size);
  double sum = 0;
  for (auto i = static_cast<std::size_t>(begin); static_cast<double>(i) < end; ++i) {
    const auto at = static_cast<double>(i);
    sum += static_cast<double>(tiny.microjoules[i]) * (std::min(at + 1, end) - std::max(at, begin));
  }
  return sum;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Score tiny_score(const run::Tiny& tiny) {
  Score score;
  score.metric = "uJ/inference";
  score.unit = "inference";
  score.published = tiny.reported;
  if (!tiny.rate || tiny.microjoules.empty()) return score;
  std::vector<double> official, exact;
  double joules = 0, exactly = 0, inferences = 0, seconds = 0;
  for (const run::TinyWindow& window : tiny.windows) {
    if (!window.inferences || !(*window.inferences > 0)) continue;
    // What the trace does not hold is not 0.
    const bool held =
        std::nearbyint(window.end * *tiny.rate) <= static_cast<double>(tiny.microjoules.size());
    const auto whole = possible(held ? microjoules(tiny, window, false) * 1e-6 : 0),
               cut = possible(held ? microjoules(tiny, window, true) * 1e-6 : 0);
    score.windows.push_back({fmt::format("window {}", score.windows.size() + 1),
                             Seconds(window.end - window.begin), whole, cut, *window.inferences});
    if (!whole || !cut) continue;
    official.push_back(whole->value * 1e6 / *window.inferences);
    exact.push_back(cut->value * 1e6 / *window.inferences);
    joules += whole->value;
    exactly += cut->value;
    inferences += *window.inferences;
    seconds += window.end - window.begin;
  }
  if (official.empty() || official.size() < score.windows.size()) return score;
  score.official = median(official);
  score.ours = median(exact);
  score.official_joules = Joules(joules);
  score.trapezoid = Joules(exactly);
  score.window = Seconds(seconds);
  score.official_watts = Watts(joules / seconds);
  score.units = inferences;
  score.rate = inferences / seconds;
  score.parts.push_back({"whole samples at the edges of the windows", Joules(joules - exactly)});
  return score;
}

}  // namespace joulediff::rules
