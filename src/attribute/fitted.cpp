// What the readings say of each operator.
//
// The counter's ticks say how much was drawn since the first, each at an instant that is known to
// within some milliseconds. The board's ring and its instant field say how much was drawn within
// windows of some tens of milliseconds, with a gain of their own. Both are sums of what ran: calls
// of each operator x its joules, static power, and what of kernels side by side is not the sum of
// them. A program of short steps has nearly the same mixture in every window; what tells operators
// apart is the part of a step by which windows are longer than a whole number of them.
//
// Of the sensors it is not known how slowly the board follows, how far the lattice of the polled
// field is off, and over how long that means: all are tried, and those with the least misfit taken.
#include "attribute/fitted.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "attribute/conditions.h"
#include "attribute/presence.h"
#include "attribute/regression.h"
#include "meter/calibrate.h"
#include "meter/samples.h"
#include "meter/stretch.h"

namespace joulediff::attribute {
namespace {

// The costliest in time; all others are one.
constexpr std::size_t kMostClasses = 60;
// An operator is told apart where its interval is at most this part of its joules, and at most this
// part of what it was believed to be beforehand.
constexpr double kTold = 0.15, kNarrower = 0.5;
// What is found of the sensors (response, shift, weights) is taken as known by the intervals of the
// last fit: they held the truth 90 % of the time on simulated programs (seeds from 100000), and are
// widened by this.
constexpr double kWiden = 1.25;
constexpr double kGain = 0.05;       // by which a board's sensors differ, 95 %
constexpr double kSideBySide = 0.2;  // of dynamic power, 95 %
constexpr double kNormal = 1.96;
// A short reading was made within so many seconds of when its sensor should have; and its relative
// deviation by what no operator's mean has (operands, temperature).
constexpr double kJitter = 5e-4, kQuiet = 2e-3;
// The board's capacitors, seconds; by a third of what the counter's ticks may be late; steps of the
// shift.
constexpr double kResponse = 1e-3, kLate = 1e-3;
constexpr Nanoseconds kStep = 1'000'000;
// Of a misfit: what explains the readings e^10 times less likely is out.
constexpr double kFarOff = 20;

struct Class {
  double calls = 0, seconds = 0;  // in the reading
};

// Which unknown is which.
struct Layout {
  std::size_t classes = 0;  // those of operators that are told apart
  std::size_t pooled() const { return classes; }
  std::size_t known() const { return classes + 1; }  // joules of units that are known
  std::size_t kinds() const { return classes + 2; }  // of kernels
  std::size_t floor() const { return classes + 2; }
  std::size_t idle() const { return classes + 3; }
  std::size_t beside() const { return classes + 4; }
  std::size_t start() const { return classes + 5; }
  std::size_t gain(std::size_t source) const { return classes + 5 + source; }  // from 1
};

// Readings of one source.
struct Readings {
  std::vector<double> value;  // joules since the first, or mean watts
  std::vector<double> deviation;
  std::vector<meter::Stamps> stamps;  // of polled ones several are possible
  std::vector<double> windows{0};     // seconds that each may be over; 0: since the first
  bool polled = false;
};

bool is_missing(const UnitCost& unit, const Usage& usage) {
  return !unit.known && usage.calls > 0;
}

class Fitter {
 public:
  Fitter(const Traced& traced, const std::vector<UnitCost>& units)
      : traced_(traced), class_of_(units.size(), kNone) {
    std::map<run::SignatureId, Class> own;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const Usage& usage = traced.spent.usage[i];
      if (!is_missing(units[i], usage)) continue;
      Class& one = own[traced.run.operators[i].signature];
      one.calls += usage.calls;
      one.seconds += usage.seconds;
    }
    std::vector<run::SignatureId> order;
    for (const auto& [signature, one] : own)
      if (signature.valid()) order.push_back(signature);
    std::ranges::stable_sort(order, std::greater<>(), [&](auto one) { return own[one].seconds; });
    order.resize(std::min(order.size(), kMostClasses));
    std::map<run::SignatureId, std::size_t> number;
    for (const run::SignatureId signature : order) {
      number.emplace(signature, classes_.size());
      classes_.push_back(own[signature]);
    }
    layout_.classes = classes_.size();
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (!is_missing(units[i], traced.spent.usage[i])) continue;
      const auto found = number.find(traced.run.operators[i].signature);
      class_of_[i] = found == number.end() ? layout_.pooled() : found->second;
    }
    idle_ = meter::idle_power(traced.meter, traced.block);
    add_counter();
    add_samples();
    believe(units);
  }

  std::size_t classes() const { return classes_.size(); }
  std::size_t class_of(std::size_t op) const { return class_of_[op]; }
  const std::vector<Belief>& prior() const { return prior_; }
  const std::vector<Class>& each() const { return classes_; }

  // Why no reading tells operators apart; empty: they may.
  std::string why_not() const {
    constexpr double kHeld = 0.1;
    if (const auto period = locked_period(traced_.step))
      return fmt::format(
          "are not told apart by a sensor with whose {:.0f} ms the steps are in lock",
          1e3 * *period);
    if (held_back(traced_.block, {traced_.reading}).value_or(0) > kHeld)
      return "have no one energy while a limit moves the clock";
    return {};
  }

  Fit fit(const std::vector<UnitCost>& units) const {
    const Presence presence = presence_of(units);
    const Readings& finest = sources_.back();
    std::vector<Tried> all;
    for (std::size_t stamps = 0; stamps < finest.stamps.size(); ++stamps)
      for (const double window : finest.windows) all.push_back(search(presence, stamps, window));
    const auto misfit = [](const Tried& one) { return one.fit.misfit; };
    const double coarse = std::ranges::min(all, {}, misfit).fit.misfit;
    std::erase_if(all, [&](const Tried& one) { return one.fit.misfit > coarse + kFarOff; });
    if (sources_.size() > 1)
      for (Tried& one : all) improve(presence, one);
    // Windows that explain the readings alike are not told apart: their answers are mixed.
    const double least = std::ranges::min(all, {}, misfit).fit.misfit;
    std::vector<double> weights;
    for (const Tried& one : all) weights.push_back(std::exp((least - one.fit.misfit) / 2));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    Fit mixed = all.front().fit;
    for (std::size_t j = 0; j < prior_.size(); ++j) {
      Belief& one = mixed.unknowns[j];
      double mean = 0, squares = 0;
      for (std::size_t i = 0; i < all.size(); ++i)
        mean += weights[i] / sum * all[i].fit.unknowns[j].value;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Belief& own = all[i].fit.unknowns[j];
        squares += weights[i] / sum *
                   (std::pow(own.half_width, 2) + std::pow(kNormal * (own.value - mean), 2));
      }
      one.value = mean;
      one.half_width = std::sqrt(squares);
    }
    return mixed;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // What is assumed of the sensors, and what the readings then say.
  struct Tried {
    std::size_t stamps = 0;
    double window = 0, response = 0;  // seconds
    Nanoseconds shift = 0;            // of polled readings in the middle of the trace
    Nanoseconds late = 0;             // by which the counter's ticks are
    double drift = 0;                 // of that, seconds a second
    Fit fit;
  };

  Nanoseconds middle() const {
    return traced_.reading.begin + (traced_.reading.end - traced_.reading.begin) / 2;
  }

  void attempt(const Presence& presence, double response, Nanoseconds shift, Tried& best) const {
    Tried one{best.stamps, best.window, response, shift, 0, 0, {}};
    one.fit = regress(observe(presence, one), prior_, sources_.size());
    if (one.fit.misfit < best.fit.misfit) best = std::move(one);
  }

  // The shift that explains the readings best, for this window.
  Tried search(const Presence& presence, std::size_t stamps, double window) const {
    Tried best{stamps, window, kResponse, 0, 0, 0, {}};
    best.fit.misfit = std::numeric_limits<double>::infinity();
    const Readings& finest = sources_.back();
    const Nanoseconds reach = finest.polled ? kStep + finest.stamps[stamps].half_width : 0;
    for (Nanoseconds shift = -reach / kStep * kStep; shift <= reach; shift += kStep)
      attempt(presence, kResponse, shift, best);
    return best;
  }

  // And the response.
  void improve(const Presence& presence, Tried& best) const {
    const Nanoseconds near = best.shift;
    for (const double response : {0.0, 2 * kResponse, 3 * kResponse})
      for (const Nanoseconds by : {-kStep, Nanoseconds{0}, kStep})
        if (by == 0 || sources_.back().polled) attempt(presence, response, near + by, best);
    for (int round = 0; round < 3; ++round) refine(presence, best);
  }

  // A reading was made within half a millisecond of its point of the lattice: what is expected of
  // it is the mean over that time. It is as uncertain as the joules differ within it: not at all
  // where both ends lie in kernels of the same power. Shift and response become unknowns like all
  // others, by their slopes.
  void refine(const Presence& presence, Tried& tried) const {
    constexpr int kHalf = 3;
    const std::vector<Observation> still = observe(presence, tried);
    std::vector<std::vector<Observation>> shifted;
    for (int i = -kHalf; i <= kHalf; ++i) {
      Tried one = tried;
      one.shift += std::llround(1e9 * kJitter * i / kHalf);
      shifted.push_back(observe(presence, one));
    }
    Tried slow = tried;
    slow.response += kJitter;
    const auto slower = observe(presence, slow);
    Tried late = tried;
    late.late += std::llround(1e9 * kLate);
    const auto later = observe(presence, late);
    std::vector<double> since;  // seconds from the middle of the trace
    for (const Readings& source : sources_)
      for (const Nanoseconds end :
           source.stamps[&source == &sources_.back() ? tried.stamps : 0].end)
        since.push_back(to_seconds(end - middle()).value);
    const auto expected = [&](const Observation& one) {  // but for what all of these have
      double sum = -one.value;
      for (std::size_t j = 0; j < layout_.start(); ++j)
        sum += one.amounts[j] * tried.fit.unknowns[j].value;
      return sum;
    };
    std::vector<Observation> all = still;
    for (std::size_t k = 0; k < all.size(); ++k) {
      Observation& one = all[k];
      if (one.source > 0) {
        double weights = 0, mean = 0, squares = 0;
        std::vector<double> spread(layout_.kinds());
        one.value = 0;
        one.amounts.assign(one.amounts.size(), 0);
        for (int i = 0; i <= 2 * kHalf; ++i) {
          const Observation& here = shifted[static_cast<std::size_t>(i)][k];
          const double weight = i == 0 || i == 2 * kHalf ? 0.5 : 1, joules = expected(here);
          weights += weight;
          mean += weight * joules;
          squares += weight * joules * joules;
          for (std::size_t j = 0; j < layout_.kinds(); ++j)
            spread[j] += weight * here.amounts[j] * here.amounts[j];
          one.value += weight * here.value;
          for (std::size_t j = 0; j < one.amounts.size(); ++j)
            one.amounts[j] += weight * here.amounts[j];
        }
        one.value /= weights;
        for (double& amount : one.amounts) amount /= weights;
        mean /= weights;
        double variance = squares / weights - mean * mean;
        for (std::size_t j = 0; j < layout_.kinds(); ++j)
          variance += std::pow(tried.fit.unknowns[j].half_width / kNormal, 2) *
                      (spread[j] / weights - one.amounts[j] * one.amounts[j]);
        one.deviation = std::hypot(kQuiet * one.amounts[layout_.gain(one.source)],
                                   std::sqrt(std::max(0.0, variance)));
      }
      const double slope =
          (expected(shifted.back()[k]) - expected(shifted.front()[k])) / (2 * kJitter);
      one.amounts.push_back(slope);
      one.amounts.push_back(slope * since[k]);
      one.amounts.push_back((expected(slower[k]) - expected(still[k])) / kJitter);
      one.amounts.push_back((expected(later[k]) - expected(still[k])) / kLate);
    }
    std::vector<Belief> prior = prior_;
    prior.push_back({0, 2 * kJitter, true});
    prior.push_back({0, std::max(sources_.back().stamps[tried.stamps].drift, 1e-7), true});
    prior.push_back({0, 2 * kJitter, true});
    prior.push_back({0, 3 * kLate, true});
    tried.fit = regress(all, prior, sources_.size());
    tried.shift += std::llround(1e9 * tried.fit.unknowns[prior_.size()].value);
    tried.response = std::max(0.0, tried.response + tried.fit.unknowns[prior_.size() + 2].value);
    tried.drift += tried.fit.unknowns[prior_.size() + 1].value;
    tried.late += std::llround(1e9 * tried.fit.unknowns[prior_.size() + 3].value);
    tried.fit.unknowns.resize(prior_.size());
  }

  // From the first tick to each of the others: their errors are apart.
  void add_counter() {
    Readings counter;
    meter::Stamps stamps;
    const auto all =
        meter::stretches(traced_.meter, traced_.block, traced_.reading.begin, traced_.reading.end);
    if (const meter::Stretch* ticks = meter::longest(all)) {
      const double watts = traced_.reading.power().value;
      for (const meter::Tick& tick : *ticks) {
        stamps.end.push_back(tick.time);
        counter.value.push_back(tick.joules - ticks->front().joules);
        counter.deviation.push_back(std::max(1e-3, watts * tick.uncertainty / std::sqrt(3.0)));
      }
    }
    counter.stamps = {std::move(stamps)};
    sources_.push_back(std::move(counter));
  }

  // Where there is a ring it is finer than the field.
  void add_samples() {
    for (meter::PowerSamples& one : meter::power_samples(
             traced_.meter, traced_.block, traced_.reading.begin, traced_.reading.end)) {
      Readings readings;
      readings.polled = !one.window;
      readings.windows = one.window ? std::vector<double>{*one.window} : windows(one.source);
      readings.deviation.assign(one.watts.size(), 0.01 * traced_.reading.power().value);
      readings.value = std::move(one.watts);
      readings.stamps = std::move(one.stamps);
      if (sources_.size() > 1 && readings.polled) continue;
      sources_.resize(1);
      sources_.push_back(std::move(readings));
    }
  }

  // As calibrated; else those of boards that were measured (docs/simulate.md has the sources).
  std::vector<double> windows(run::Source source) const {
    const auto counter =
        std::ranges::find(traced_.block.series, traced_.meter.source, &run::Series::source);
    if (counter != traced_.block.series.end())
      if (const auto profile = meter::profile_of(traced_.run, counter->channel)) {
        const auto sensor =
            std::ranges::find(profile->sensors, source, &meter::SensorModel::source);
        if (sensor != profile->sensors.end() && sensor->window.identified())
          return {sensor->window.value};
      }
    return {0.025, 0.01, 0.05, 0.1};
  }

  void believe(const std::vector<UnitCost>& units) {
    const Timeline& spent = traced_.spent;
    double others = spent.busy + spent.waiting;
    double joules =
        (traced_.reading.energy.joules - traced_.floor.watts * traced_.reading.seconds()).value;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (class_of_[i] == kNone) {
        others -= spent.usage[i].share;
        joules -= spent.usage[i].calls * units[i].joules;
      }
    const double watts = others > 0 ? std::max(0.0, joules / others) : 0;
    // A watt is as good as another: the mean, give or take itself.
    for (const Class& one : classes_) {
      const double each = watts * one.seconds / one.calls;
      prior_.push_back({each, each});
    }
    const double seconds = traced_.reading.seconds().value;
    prior_.push_back({watts, watts});
    prior_.push_back({1, kGain});
    prior_.push_back({0, std::max(1e-3, traced_.floor.half_width.value), true});
    prior_.push_back(
        {0, idle_ ? idle_->half_width.value : kGain * traced_.floor.watts.value, true});
    prior_.push_back({0, kSideBySide * watts, true});
    prior_.push_back(
        {0, 0.1 * traced_.reading.energy.joules.value / std::max(seconds, 1e-3), true});
    for (std::size_t s = 1; s < sources_.size(); ++s) prior_.push_back({0, kGain, true});
  }

  Presence presence_of(const std::vector<UnitCost>& units) const {
    const run::KernelSeries& trace = traced_.trace;
    std::vector<std::uint32_t> classes(trace.size());
    std::vector<float> amounts(trace.size());
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const run::OperatorId op = traced_.recognition.op[i];
      const std::size_t own = op.valid() ? class_of_[op.index()] : layout_.pooled();
      const float calls = traced_.recognition.calls[i];
      if (own < layout_.classes) {
        classes[i] = static_cast<std::uint32_t>(own);
        amounts[i] = calls;
      } else if (own == kNone) {
        classes[i] = static_cast<std::uint32_t>(layout_.known());
        amounts[i] = static_cast<float>(units[op.index()].joules) * calls;
      } else {
        classes[i] = static_cast<std::uint32_t>(layout_.pooled());
        amounts[i] = static_cast<float>(to_seconds(trace.duration[i]).value);
      }
    }
    return {trace, std::move(classes), std::move(amounts), layout_.kinds()};
  }

  std::vector<Observation> observe(const Presence& presence, const Tried& tried) const {
    std::vector<Observation> all;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const Readings& source = sources_[s];
      const std::vector<Nanoseconds>& ends = source.stamps[s > 0 ? tried.stamps : 0].end;
      std::vector<Nanoseconds> times;
      std::vector<std::pair<Nanoseconds, Nanoseconds>> spans;
      for (const Nanoseconds end : ends) {
        Nanoseconds to = end, from = ends.front();
        if (s == 0) {
          to -= tried.late;
          from -= tried.late;
        }
        if (source.polled)
          to += tried.shift +
                static_cast<Nanoseconds>(tried.drift * static_cast<double>(end - middle()));
        if (s > 0) from = to - std::llround(1e9 * tried.window);
        spans.emplace_back(from, to);
        times.insert(times.end(), {from, to});
      }
      std::ranges::sort(times);
      const auto [last, end] = std::ranges::unique(times);
      times.erase(last, end);
      // The counter's own lag holds back like the board's capacitors.
      const std::vector<Present> present =
          presence.up_to(times, tried.response + (s == 0 ? traced_.meter.lag : 0));
      const auto at = [&](Nanoseconds time) -> const Present& {
        return present[static_cast<std::size_t>(std::ranges::lower_bound(times, time) -
                                                times.begin())];
      };
      for (std::size_t k = 0; k < spans.size(); ++k)
        all.push_back(observation(s, k, spans[k], at(spans[k].first), at(spans[k].second)));
    }
    return all;
  }

  Observation observation(std::size_t source, std::size_t k,
                          std::pair<Nanoseconds, Nanoseconds> span, const Present& from,
                          const Present& to) const {
    const double seconds = to_seconds(span.second - span.first).value;
    const double idle = seconds - (to.busy - from.busy);
    // Of the counter in joules, of the others in watts.
    const double unit = source == 0 ? 1 : seconds;
    const double reading = sources_[source].value[k];
    Observation one{reading, sources_[source].deviation[k], source,
                    std::vector<double>(prior_.size())};
    const double floor = traced_.floor.watts.value;
    one.value -= floor * seconds / unit;
    if (idle_) one.value -= (idle_->watts.value - floor) * idle / unit;
    for (std::size_t j = 0; j < layout_.kinds(); ++j)
      one.amounts[j] = (to.amounts[j] - from.amounts[j]) / unit;
    one.amounts[layout_.floor()] = seconds / unit;
    one.amounts[layout_.idle()] = idle / unit;
    one.amounts[layout_.beside()] = (to.overlapped - from.overlapped) / unit;
    if (source == 0)
      one.amounts[layout_.start()] = 1;
    else
      one.amounts[layout_.gain(source)] = reading;
    return one;
  }

  const Traced& traced_;
  std::vector<std::size_t> class_of_;  // by operator; none: known
  std::vector<Class> classes_;
  Layout layout_;
  std::optional<meter::StaticPower> idle_;
  std::vector<Readings> sources_;  // the counter first
  std::vector<Belief> prior_;
};

}  // namespace

void fit_units(const Traced& traced, std::vector<UnitCost>& units, Diagnostics& diagnostics) {
  const Fitter fitter(traced, units);
  const Fit fit = fitter.fit(units);
  const std::string why = fitter.why_not();
  const auto told = [&](std::size_t one) {
    const Belief &now = fit.unknowns[one], &before = fitter.prior()[one];
    return why.empty() && kWiden * now.half_width <= kTold * now.value &&
           kWiden * now.half_width <= kNarrower * before.half_width;
  };
  std::size_t answered = 0, fitted = 0;
  const std::size_t no_group = traced.run.signatures.size();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Usage& usage = traced.spent.usage[i];
    if (!is_missing(units[i], usage)) continue;
    const std::size_t own = fitter.class_of(i);
    const bool pooled = own == fitter.classes();
    const bool good = !pooled && told(own);
    const double scale = pooled ? usage.seconds / usage.calls : 1;
    units[i] = {
        true,
        scale * fit.unknowns[own].value,
        scale * std::min(kWiden * fit.unknowns[own].half_width, fitter.prior()[own].half_width),
        0,
        0,
        pooled ? no_group : traced.run.operators[i].signature.index(),
        good ? Standing::estimated : Standing::modelled};
    answered += good;
    ++fitted;
  }
  add(diagnostics, Severity::note, "attribute.fitted",
      fmt::format("{} operators were not replayed: their joules are fitted to the energy of the "
                  "trace itself, so `unattributed` is what the fit left. Its readings tell {} of "
                  "them to within {:.0f} %; the others {}, and go by their share of the time "
                  "(modelled). Record with a replay pass to measure them, or a longer or more "
                  "varied trace",
                  fitted, answered, 100 * kTold,
                  why.empty() ? "have much the same mixture in every reading" : why));
}

}  // namespace joulediff::attribute
