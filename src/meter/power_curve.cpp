// The curve's joules up to a time t are S(t) + d(t): S is the integral of the shape
// (power_shape.h), d what it is off by. Each piece of the shape is wrong by itself, so d is a
// random walk; each tick of the counter says what S + d was, at an instant that is known to within
// its uncertainty u: to within P u / sqrt(3) joules, P the larger power beside it. So d follows
// from Kalman's filter and the smoother of Rauch, Tung and Striebel, all scalars (Rauch, Tung,
// Striebel 1965, "Maximum likelihood estimates of linear dynamic systems").
//
// How wrong the shape's pieces really are is one factor for all of them: that under which the
// ticks are likeliest. A tick's error stays with the tick, unless the samples around it are no
// better. But it cannot be larger than P u: a tick that the curve passes farther off counts for
// more, until it does not. That is what closing against the counter means.
//
// Where the shape has a gap, the curve has the counter's steps; where the counter has, the shape
// alone; where both have, nothing.
#include "meter/power_curve.h"

#include <algorithm>
#include <cmath>

#include "meter/lag.h"
#include "meter/power_shape.h"
#include "meter/power_walk.h"
#include "meter/stretch.h"

namespace joulediff::meter {
namespace {

constexpr double kNormal = 1.96;

double seconds(Nanoseconds from, Nanoseconds to) {
  return to_seconds(to - from).value;
}

}  // namespace

class PowerFuser {
 public:
  PowerFuser(const Meter& meter, const run::Block& block, const std::vector<SensorModel>& sensors)
      : stretches_(stretches(meter, block, block.begin, block.end)),
        shape_(power_shape(block, meter.channels.front(), sensors)),
        begin_(block.begin),
        end_(block.end) {
    std::erase_if(stretches_, [](const Stretch& one) { return one.size() < 2; });
    std::ranges::sort(stretches_, {}, [](const Stretch& one) { return one.front().time; });
    curve_.meter = meter;
    const auto counter = std::ranges::find(sensors, meter.source, &SensorModel::source);
    if (counter != sensors.end() && counter->tick.identified()) quantum_ = counter->tick.value;
    for (auto* pieces : {&shape_.fine, &shape_.coarse}) set_gain(*pieces, sensors);
    set_lag();
  }

  PowerCurve fused() && {
    Nanoseconds now = begin_;
    for (const Stretch& one : stretches_) {
      if (one.front().time < now) continue;  // another series of the same time
      without_counter(now, one.front().time);
      with_counter(one);
      now = one.back().time;
      curve_.closed = true;
    }
    without_counter(now, end_);
    return std::move(curve_);
  }

 private:
  // Of each source, what it says over the times in which the counter runs, by what that says.
  void set_gain(std::vector<ShapePiece>& pieces, const std::vector<SensorModel>& sensors) const {
    constexpr double kShortest = 1, kPlausible = 2;  // seconds, a factor
    std::vector<run::Source> sources;
    for (const ShapePiece& one : pieces)
      if (std::ranges::find(sources, one.source) == sources.end()) sources.push_back(one.source);
    for (const run::Source source : sources) {
      double said = 0, counted = 0, time = 0;
      for (const ShapePiece& one : pieces) {
        if (one.source != source) continue;
        for (const Stretch& stretch : stretches_) {
          if (one.begin < stretch.front().time || one.end > stretch.back().time) continue;
          said += one.watts * seconds(one.begin, one.end);
          counted += at(stretch, one.end) - at(stretch, one.begin);
          time += seconds(one.begin, one.end);
        }
      }
      const auto model = std::ranges::find(sensors, source, &SensorModel::source);
      double gain = model != sensors.end() && model->gain.identified() ? model->gain.value : 1;
      if (time >= kShortest && counted > 0) gain = said / counted;
      if (gain < 1 / kPlausible || gain > kPlausible) continue;
      for (ShapePiece& one : pieces)
        if (one.source == source) {
          one.watts /= gain;
          one.rate /= gain * gain;
        }
    }
  }

  // Joules of the counter at a time between its ticks.
  static double at(const Stretch& stretch, Nanoseconds time) {
    const auto after = std::ranges::lower_bound(stretch, time, {}, &Tick::time);
    if (after == stretch.begin() || after->time == time) return after->joules;
    const Tick& before = *(after - 1);
    return before.joules + (after->joules - before.joules) * seconds(before.time, time) /
                               seconds(before.time, after->time);
  }

  double watts_of_shape(Nanoseconds time, double otherwise) const {
    const auto one = std::ranges::upper_bound(shape_.fine, time, {}, &ShapePiece::end);
    return one != shape_.fine.end() && one->begin <= time ? one->watts : otherwise;
  }

  // Joules that a first-order response of time constant `lag` holds back: lag x power (lag.h).
  void set_lag() {
    const double lag = curve_.meter.lag;
    if (lag <= 0) return;
    for (Stretch& one : stretches_) {
      const Stretch raw = one;
      for (std::size_t i = 0; i < raw.size(); ++i) {
        const std::size_t k = std::max<std::size_t>(i, 1);
        const double watts =
            (raw[k].joules - raw[k - 1].joules) / seconds(raw[k - 1].time, raw[k].time);
        one[i].joules += lag * watts_of_shape(raw[i].time, watts);
        one[i].uncertainty += lag / 4;
      }
    }
  }

  void add(PowerSegment one) {
    if (one.end > one.begin) curve_.segments_.push_back(one);
    if (one.end > one.begin) curve_.places_.push_back({});
  }

  // The shape alone; `coarse` where nothing else is.
  void without_counter(Nanoseconds from, Nanoseconds to) {
    std::vector<ShapePiece> inside;
    for (ShapePiece one : shape_.coarse) {
      // Of a part of a second its mean says too little.
      const bool cut = one.begin < from || one.end > to;
      if (cut && one.source == run::Source::nvml_power_average) continue;
      one.begin = std::max(one.begin, from);
      one.end = std::min(one.end, to);
      if (one.end > one.begin) inside.push_back(one);
    }
    Nanoseconds now = from;
    for (std::size_t i = 0; i < inside.size();) {
      add({now, inside[i].begin});
      std::vector<ShapePiece> span;
      do {
        span.push_back(inside[i++]);
      } while (i < inside.size() && inside[i].begin == span.back().end);
      now = span.back().end;
      add_span(span, {});
    }
    add({now, to});
  }

  // The shape where it is, in its gaps the counter's steps.
  void with_counter(const Stretch& ticks) {
    const Nanoseconds from = ticks.front().time, to = ticks.back().time;
    std::vector<ShapePiece> all;
    Nanoseconds now = from;
    const auto steps = [&](Nanoseconds until) {
      for (const Tick& tick : ticks) {
        if (tick.time <= now) continue;
        const Nanoseconds end = std::min(tick.time, until);
        if (end <= now) return;
        ShapePiece one{now, end, 0, 0, curve_.meter.source};
        one.watts = (at(ticks, end) - at(ticks, now)) / seconds(now, end);
        all.push_back(one);
        now = end;
      }
    };
    for (ShapePiece one : shape_.fine) {
      one.begin = std::max(one.begin, from);
      one.end = std::min(one.end, to);
      if (one.end <= one.begin) continue;
      steps(one.begin);
      all.push_back(one);
      now = one.end;
    }
    steps(to);
    add_span(all, ticks);
  }

  void add_span(const std::vector<ShapePiece>& pieces, const Stretch& ticks) {
    PowerCurve::Span span;
    span.node.push_back(pieces.front().begin);
    std::vector<WalkStep> steps;
    std::vector<double> sum{0};
    std::vector<WalkTick> seen;
    std::vector<PowerCurve::Place> places;
    auto tick = ticks.begin();
    const auto see = [&] {
      while (tick != ticks.end() && tick->time < span.node.back()) ++tick;
      if (tick == ticks.end() || tick->time != span.node.back()) return;
      seen.push_back(observed(ticks, static_cast<std::size_t>(tick - ticks.begin()), pieces));
      seen.back().node = span.node.size() - 1;
      while (tick != ticks.end() && tick->time <= span.node.back()) ++tick;
    };
    see();
    for (const ShapePiece& piece : pieces) {
      const std::size_t from = span.node.size() - 1;
      while (span.node.back() < piece.end) {
        const Nanoseconds end = tick == ticks.end() ? piece.end : std::min(piece.end, tick->time);
        const double length = seconds(span.node.back(), end);
        const bool counter = piece.source == curve_.meter.source;
        // A part of the counter's step had the step's power before that is known, give or take it.
        constexpr double kLeastWatts = 100;
        steps.push_back({piece.watts * length, piece.rate * length,
                         counter ? std::pow(std::max(kLeastWatts, piece.watts) * length, 2) : 0});
        sum.push_back(sum.back() + steps.back().joules);
        span.node.push_back(end);
        see();
      }
      places.push_back({curve_.spans_.size(), from, span.node.size() - 1});
    }
    Walk smoothed = closed(steps, sum, seen);
    span.joules = sum;
    for (std::size_t i = 0; i < sum.size(); ++i) span.joules[i] += smoothed.off[i];
    span.variance = std::move(smoothed.variance);
    make_monotone(span.joules, span.variance);
    span.carried = std::move(smoothed.carried);
    span.tick.assign(span.node.size(), false);
    for (const WalkTick& one : seen) span.tick[one.node] = true;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto [index, from, to] = places[i];
      const double length = seconds(span.node[from], span.node[to]);
      const double watts = (span.joules[to] - span.joules[from]) / length;
      const double half = kNormal * std::sqrt(span.between(from, to)) / length;
      add({span.node[from], span.node[to], true, Watts(watts),
           Watts(std::min(watts, std::max(0.0, watts - half))), Watts(watts + half),
           pieces[i].source});
      curve_.places_.back() = places[i];
    }
    curve_.spans_.push_back(std::move(span));
  }

  // What a tick says: of the power beside it the larger one counts, on its own or as the shape has
  // it.
  WalkTick observed(const Stretch& ticks, std::size_t i,
                    const std::vector<ShapePiece>& pieces) const {
    const Tick& tick = ticks[i];
    double watts = 0;
    const auto after = std::ranges::upper_bound(pieces, tick.time, {}, &ShapePiece::end);
    if (after != pieces.end()) watts = after->watts;
    if (after != pieces.begin()) watts = std::max(watts, (after - 1)->watts);
    const double joules = std::max(watts * tick.uncertainty, 1e-3);
    return {0, tick.joules - ticks.front().joules,
            std::hypot(joules / std::sqrt(3.0), quantum_ / std::sqrt(12.0)), joules + quantum_};
  }

  std::vector<Stretch> stretches_;
  Shape shape_;
  Nanoseconds begin_, end_;
  double quantum_ = 1e-3;  // joules
  PowerCurve curve_;
};

double PowerCurve::Span::between(std::size_t from, std::size_t to) const {
  double shared = variance[to];
  for (std::size_t i = from; i < to; ++i) shared *= carried[i];
  return std::max(0.0, variance[from] + variance[to] - 2 * shared);
}

std::optional<Energy> PowerCurve::energy(Nanoseconds from, Nanoseconds to) const {
  if (from >= to || segments_.empty() || from < segments_.front().begin ||
      to > segments_.back().end)
    return std::nullopt;
  double peak = 0;
  for (const PowerSegment& one : segments_) peak = std::max(peak, one.high.value);
  double joules = 0, variance = 0, within = 0;
  bool measured = true;
  Place run;  // of whole pieces that follow one another
  const auto close = [&] {
    if (run.to > run.from) variance += spans_[run.span].between(run.from, run.to);
    run = {};
  };
  const auto add_piece = [&](std::size_t index, std::size_t i) {
    const Span& span = spans_[index];
    const Nanoseconds begin = span.node[i], end = span.node[i + 1];
    const double length = seconds(begin, end);
    const double part = seconds(std::max(from, begin), std::min(to, end));
    const double watts = (span.joules[i + 1] - span.joules[i]) / length;
    joules += watts * part;
    if (part < length) {
      // Where within the piece its joules were is not known.
      const double most = std::max(watts, peak - watts);
      within = std::hypot(within, std::min(part, length - part) * most);
      variance += std::pow(part / length, 2) * span.between(i, i + 1);
      measured = false;
      return;
    }
    if (run.to == run.from || run.span != index || run.to != i) {
      close();
      run = {index, i, i};
    }
    run.to = i + 1;
    measured = measured && (begin != from || span.tick[i]) && (end != to || span.tick[i + 1]);
  };
  const auto first = std::ranges::upper_bound(segments_, from, {}, &PowerSegment::end);
  for (auto one = first; one != segments_.end() && one->begin < to; ++one) {
    if (!one->known) return std::nullopt;
    const Place& place = places_[static_cast<std::size_t>(one - segments_.begin())];
    for (std::size_t i = place.from; i < place.to; ++i)
      if (spans_[place.span].node[i + 1] > from && spans_[place.span].node[i] < to)
        add_piece(place.span, i);
  }
  close();
  const double half = std::hypot(kNormal * std::sqrt(variance), within);
  return Energy{Joules(joules), Joules(std::min(joules, std::max(0.0, joules - half))),
                Joules(joules + half), measured ? Standing::measured : Standing::estimated};
}

PowerCurve power_curve(const Meter& meter, const run::Block& block,
                       const std::vector<SensorModel>& sensors) {
  return PowerFuser(meter, block, sensors).fused();
}

std::vector<PowerCurve> power_curves(const run::Run& run) {
  std::vector<PowerCurve> all;
  std::vector<std::string> used;
  for (const Meter& meter : meters(run))
    if (meter.boundary == Boundary::board)
      used.insert(used.end(), meter.channels.begin(), meter.channels.end());
  for (Profile& profile : calibrate(run)) {
    if (!used.empty() && std::ranges::find(used, profile.uuid) == used.end()) continue;
    if (const auto kept = profile_of(run, profile.uuid))
      for (SensorModel& own : profile.sensors)
        for (const SensorModel& known : kept->sensors) {
          if (known.source != own.source) continue;
          if (!own.window.identified()) own.window = known.window;
          if (!own.lag.identified()) own.lag = known.lag;
          if (!own.gain.identified()) own.gain = known.gain;
        }
    for (std::size_t i = 0; i < run.blocks.size(); ++i) {
      Meter meter;
      meter.channels = {profile.uuid};
      const auto has = [&](run::Source source) {
        return std::ranges::any_of(run.blocks[i].series, [&](const run::Series& series) {
          return series.source == source && series.channel == profile.uuid;
        });
      };
      meter.source = has(run::Source::amd_energy) && !has(run::Source::nvml_energy)
                         ? run::Source::amd_energy
                         : run::Source::nvml_energy;
      meter.name =
          meter.source == run::Source::amd_energy ? "AMD energy counter" : "NVML energy counter";
      meter.lag = lag(meter, run.blocks[i]);
      PowerCurve curve = power_curve(meter, run.blocks[i], profile.sensors);
      curve.block = i;
      if (std::ranges::any_of(curve.segments(), &PowerSegment::known))
        all.push_back(std::move(curve));
    }
  }
  return all;
}

}  // namespace joulediff::meter
