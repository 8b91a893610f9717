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
constexpr double kGain = 0.05;       // by which a board's sensors differ, 95 %
constexpr double kSideBySide = 0.2;  // of dynamic power, 95 %
constexpr double kEdge = 3e-4;       // seconds by which a reading's ends are uncertain

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

// Readings of one source: joules drawn in [begin, end].
struct Piece {
  Nanoseconds begin = 0, end = 0;
  double joules = 0, deviation = 0;
};
struct Pieces {
  std::vector<Piece> all;
  std::vector<double> windows;  // seconds that they may be over; none: known
  Nanoseconds doubt = 0;        // of all ends together
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

  Fit fit(const std::vector<UnitCost>& units) const {
    const Presence presence = presence_of(units);
    struct Tried {
      double window = 0, response = 1e-3;
      Nanoseconds shift = 0;
    };
    Tried best;
    Fit result;
    double least = std::numeric_limits<double>::infinity();
    const auto attempt = [&](const Tried& tried) {
      Fit found = regress(observe(presence, tried.window, tried.response, tried.shift), prior_,
                          sources_.size());
      if (found.misfit >= least) return;
      least = found.misfit;
      best = tried;
      result = std::move(found);
    };
    const auto polled =
        std::ranges::find_if(sources_, [](const Pieces& one) { return !one.windows.empty(); });
    if (sources_.size() == 1) {
      attempt(best);
      return result;
    }
    constexpr Nanoseconds kMillisecond = 1'000'000;
    if (polled != sources_.end()) {
      for (const double window : polled->windows) attempt({window, best.response, 0});
      const double window = best.window;
      const Nanoseconds reach = kMillisecond + polled->doubt;
      for (Nanoseconds shift = -reach; shift <= reach; shift += kMillisecond)
        if (shift != 0) attempt({window, best.response, shift});
    }
    for (const double response : {0.0, 5e-4, 2e-3, 3e-3}) {
      attempt({best.window, response, best.shift});
    }
    const Tried near = best;
    for (const Nanoseconds shift : {-kMillisecond / 2, kMillisecond / 2})
      attempt({near.window, near.response, near.shift + shift});
    return result;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // From the first tick to each of the others: their errors are apart.
  void add_counter() {
    Pieces counter;
    const auto all =
        meter::stretches(traced_.meter, traced_.block, traced_.reading.begin, traced_.reading.end);
    if (const meter::Stretch* ticks = meter::longest(all)) {
      const double watts = traced_.reading.power().value;
      for (const meter::Tick& tick : *ticks)
        counter.all.push_back({ticks->front().time, tick.time, tick.joules - ticks->front().joules,
                               std::max(1e-3, watts * tick.uncertainty / std::sqrt(3.0))});
    }
    sources_.push_back(std::move(counter));
  }

  void add_samples() {
    for (const meter::PowerSamples& one : meter::power_samples(
             traced_.meter, traced_.block, traced_.reading.begin, traced_.reading.end)) {
      Pieces pieces;
      pieces.doubt = one.half_width;
      if (!one.window) pieces.windows = windows(one.source);
      const double watts = traced_.reading.power().value;
      for (std::size_t i = 0; i < one.end.size(); ++i)
        pieces.all.push_back({one.window ? one.end[i] - std::llround(1e9 * *one.window) : 0,
                              one.end[i], one.watts[i], watts * kEdge});
      sources_.push_back(std::move(pieces));
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

  std::vector<Observation> observe(const Presence& presence, double window, double response,
                                   Nanoseconds shift) const {
    std::vector<Observation> all;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const bool polled = !sources_[s].windows.empty();
      const Nanoseconds by = polled ? shift : 0;
      std::vector<Nanoseconds> times;
      std::vector<std::pair<Nanoseconds, Nanoseconds>> spans;
      for (const Piece& one : sources_[s].all) {
        const Nanoseconds begin = polled ? one.end - std::llround(1e9 * window) : one.begin;
        spans.emplace_back(begin + by, one.end + by);
        times.insert(times.end(), {begin + by, one.end + by});
      }
      std::ranges::sort(times);
      const auto [last, end] = std::ranges::unique(times);
      times.erase(last, end);
      // The counter's own lag holds back like the board's capacitors.
      const std::vector<Present> present =
          presence.up_to(times, response + (s == 0 ? traced_.meter.lag : 0));
      const auto at = [&](Nanoseconds time) -> const Present& {
        return present[static_cast<std::size_t>(std::ranges::lower_bound(times, time) -
                                                times.begin())];
      };
      for (std::size_t k = 0; k < spans.size(); ++k)
        all.push_back(
            observation(s, sources_[s].all[k], spans[k], at(spans[k].first), at(spans[k].second)));
    }
    return all;
  }

  Observation observation(std::size_t source, const Piece& piece,
                          std::pair<Nanoseconds, Nanoseconds> span, const Present& from,
                          const Present& to) const {
    const double seconds = to_seconds(span.second - span.first).value;
    const double idle = seconds - (to.busy - from.busy);
    const double joules = source == 0 ? piece.joules : piece.joules * seconds;  // or watts
    Observation one{joules, piece.deviation, source, std::vector<double>(prior_.size())};
    const double floor = traced_.floor.watts.value;
    one.value -= floor * seconds;
    if (idle_) one.value -= (idle_->watts.value - floor) * idle;
    for (std::size_t j = 0; j < layout_.kinds(); ++j)
      one.amounts[j] = to.amounts[j] - from.amounts[j];
    one.amounts[layout_.floor()] = seconds;
    one.amounts[layout_.idle()] = idle;
    one.amounts[layout_.beside()] = to.overlapped - from.overlapped;
    if (source == 0)
      one.amounts[layout_.start()] = 1;
    else
      one.amounts[layout_.gain(source)] = joules;
    return one;
  }

  const Traced& traced_;
  std::vector<std::size_t> class_of_;  // by operator; none: known
  std::vector<Class> classes_;
  Layout layout_;
  std::optional<meter::StaticPower> idle_;
  std::vector<Pieces> sources_;  // the counter first
  std::vector<Belief> prior_;
};

}  // namespace

void fit_units(const Traced& traced, std::vector<UnitCost>& units, Diagnostics& diagnostics) {
  const Fitter fitter(traced, units);
  const Fit fit = fitter.fit(units);
  const auto told = [&](std::size_t one) {
    const Belief &now = fit.unknowns[one], &before = fitter.prior()[one];
    return now.half_width <= kTold * now.value && now.half_width <= kNarrower * before.half_width;
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
    units[i] = {true,
                scale * fit.unknowns[own].value,
                scale * fit.unknowns[own].half_width,
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
                  "them to within {:.0f} %; the others have the same mixture in every reading, and "
                  "go by their share of the time (modelled). Record with a replay pass to measure "
                  "them, or a longer or more varied trace",
                  fitted, answered, 100 * kTold));
}

}  // namespace joulediff::attribute
