// What the readings say of each operator.
//
// A program of short steps has nearly the same mixture in every window (mixture.h); what tells
// operators apart is the part of a step by which windows are longer than a whole number of them.
// Of the sensors it is not known how slowly the board follows, how far the lattice of the polled
// field is off, and over how long that means: all are tried, and those with the least misfit taken.
//
// A model that is wrong by half a millisecond can fit, and name the wrong operator with a narrow
// interval. It leaves traces: another model fits about as well, or the residuals are larger than
// deviations that are known, or follow one another, or the field's readings lie where its lattice
// has no point. Where there is one of these nothing is answered.
#include "attribute/fitted.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "attribute/conditions.h"
#include "attribute/mixture.h"

namespace joulediff::attribute {
namespace {

// An operator is told apart where its interval is at most this part of its joules, and at most this
// part of what it was believed to be beforehand.
constexpr double kTold = 0.15, kNarrower = 0.5;
// What the residuals do not show (operands that differ from call to call, a window that is assumed)
// makes errors as much larger; on simulated programs (seeds from 103000, on which nothing else was
// chosen) the intervals without it held the truth 89 % of the time.
constexpr double kWiden = 1.25;
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
// Residuals have structure where they are this many times what is known of the readings, or where
// one is so much like the next.
constexpr double kMostScatter = 1.5, kMostCorrelation = 0.5;

class Fitter {
 public:
  Fitter(const Traced& traced, const std::vector<UnitCost>& units)
      : traced_(traced), mixture_(traced, units) {}

  const Mixture& mixture() const { return mixture_; }

  // The unknowns; as they were believed to be where nothing tells (why_not()).
  std::vector<Belief> fit() {
    if (why_not_ = beforehand(); !why_not_.empty()) return mixture_.prior();
    std::vector<Tried> all;
    for (std::size_t stamps = 0; stamps < finest().stamps.size(); ++stamps)
      for (const double window : finest().windows) all.push_back(search(stamps, window));
    const auto misfit = [](const Tried& one) { return one.fit.misfit; };
    const double least = std::ranges::min(all, {}, misfit).fit.misfit;
    std::erase_if(all, [&](const Tried& one) { return one.fit.misfit > least + kFarOff; });
    improve(all.front());
    why_not_ = afterwards(all);
    return why_not_.empty() ? all.front().fit.unknowns : mixture_.prior();
  }

  // Why no reading tells operators apart; empty: they may.
  const std::string& why_not() const { return why_not_; }

 private:
  struct Tried {
    Assumed assumed;
    Fit fit;
  };

  const Readings& finest() const { return mixture_.sources().back(); }
  const Layout& layout() const { return mixture_.layout(); }

  std::string beforehand() const {
    constexpr double kHeld = 0.1;
    if (const auto period = locked_period(traced_.step))
      return fmt::format(
          "are not told apart by a sensor with whose {:.0f} ms the steps are in lock",
          1e3 * *period);
    if (held_back(traced_.block, {traced_.reading}).value_or(0) > kHeld)
      return "have no one energy while a limit moves the clock";
    if (mixture_.sources().size() < 2) return "are not told apart by the energy counter alone";
    return {};
  }

  std::string afterwards(const std::vector<Tried>& all) const {
    if (all.size() > 1) return "are told differently by what may be true of the sensor";
    const Tried& one = all.front();
    const std::size_t source = mixture_.sources().size() - 1;
    if (one.fit.scatter[source] > kMostScatter || one.fit.correlation[source] > kMostCorrelation)
      return "do not explain what the sensor read";
    const auto off = static_cast<double>(std::abs(one.assumed.shift));
    const auto known = static_cast<double>(finest().stamps[one.assumed.stamps].half_width);
    if (finest().polled && off > known + 1e9 * kJitter)
      return "do not explain when the sensor read";
    return {};
  }

  void attempt(double response, Nanoseconds shift, Tried& best) const {
    Tried one = best;
    one.assumed.response = response;
    one.assumed.shift = shift;
    one.fit = regress(mixture_.observe(one.assumed), mixture_.prior(), mixture_.sources().size());
    if (one.fit.misfit < best.fit.misfit) best = std::move(one);
  }

  // The shift that explains the readings best, for this window.
  Tried search(std::size_t stamps, double window) const {
    Tried best{{stamps, window, kResponse, 0, 0, 0}, {}};
    best.fit.misfit = std::numeric_limits<double>::infinity();
    const Nanoseconds reach = finest().polled ? kStep + finest().stamps[stamps].half_width : 0;
    for (Nanoseconds shift = -reach / kStep * kStep; shift <= reach; shift += kStep)
      attempt(kResponse, shift, best);
    return best;
  }

  // And the response.
  void improve(Tried& best) const {
    const Nanoseconds near = best.assumed.shift;
    for (const double response : {0.0, 2 * kResponse, 3 * kResponse})
      for (const Nanoseconds by : {-kStep, Nanoseconds{0}, kStep})
        if (by == 0 || finest().polled) attempt(response, near + by, best);
    for (int round = 0; round < 3; ++round) refine(best);
  }

  // A reading was made within half a millisecond of its point of the lattice: what is expected of
  // it is the mean over that time. It is as uncertain as the joules differ within it: not at all
  // where both ends lie in kernels of the same power. Shift and response become unknowns like all
  // others, by their slopes.
  void refine(Tried& tried) const {
    constexpr int kHalf = 3;
    const std::vector<Observation> still = mixture_.observe(tried.assumed);
    std::vector<std::vector<Observation>> shifted;
    for (int i = -kHalf; i <= kHalf; ++i) {
      Assumed one = tried.assumed;
      one.shift += std::llround(1e9 * kJitter * i / kHalf);
      shifted.push_back(mixture_.observe(one));
    }
    Assumed slow = tried.assumed;
    slow.response += kJitter;
    const auto slower = mixture_.observe(slow);
    Assumed late = tried.assumed;
    late.late += std::llround(1e9 * kLate);
    const auto later = mixture_.observe(late);
    std::vector<double> since;  // seconds from the middle of the trace
    for (const Readings& source : mixture_.sources())
      for (const Nanoseconds end :
           source.stamps[&source == &finest() ? tried.assumed.stamps : 0].end)
        since.push_back(to_seconds(end - mixture_.middle()).value);
    const auto expected = [&](const Observation& one) {  // but for what all of these have
      double sum = -one.value;
      for (std::size_t j = 0; j < layout().start(); ++j)
        sum += one.amounts[j] * tried.fit.unknowns[j].value;
      return sum;
    };
    std::vector<Observation> all = still;
    for (std::size_t k = 0; k < all.size(); ++k) {
      Observation& one = all[k];
      if (one.source > 0) {
        double weights = 0, mean = 0, squares = 0;
        std::vector<double> spread(layout().kinds());
        one.value = 0;
        one.amounts.assign(one.amounts.size(), 0);
        for (int i = 0; i <= 2 * kHalf; ++i) {
          const Observation& here = shifted[static_cast<std::size_t>(i)][k];
          const double weight = i == 0 || i == 2 * kHalf ? 0.5 : 1, joules = expected(here);
          weights += weight;
          mean += weight * joules;
          squares += weight * joules * joules;
          for (std::size_t j = 0; j < layout().kinds(); ++j)
            spread[j] += weight * here.amounts[j] * here.amounts[j];
          one.value += weight * here.value;
          for (std::size_t j = 0; j < one.amounts.size(); ++j)
            one.amounts[j] += weight * here.amounts[j];
        }
        one.value /= weights;
        for (double& amount : one.amounts) amount /= weights;
        mean /= weights;
        double variance = squares / weights - mean * mean;
        for (std::size_t j = 0; j < layout().kinds(); ++j)
          variance += std::pow(tried.fit.unknowns[j].half_width / kNormal, 2) *
                      (spread[j] / weights - one.amounts[j] * one.amounts[j]);
        one.deviation = std::hypot(kQuiet * one.amounts[layout().gain(one.source)],
                                   std::sqrt(std::max(0.0, variance)));
      }
      const double slope =
          (expected(shifted.back()[k]) - expected(shifted.front()[k])) / (2 * kJitter);
      one.amounts.push_back(slope);
      one.amounts.push_back(slope * since[k]);
      one.amounts.push_back((expected(slower[k]) - expected(still[k])) / kJitter);
      one.amounts.push_back((expected(later[k]) - expected(still[k])) / kLate);
    }
    std::vector<Belief> prior = mixture_.prior();
    prior.push_back({0, 2 * kJitter, true});
    prior.push_back({0, std::max(finest().stamps[tried.assumed.stamps].drift, 1e-7), true});
    prior.push_back({0, 2 * kJitter, true});
    prior.push_back({0, 3 * kLate, true});
    tried.fit = regress(all, prior, mixture_.sources().size(), 1);
    tried.assumed.shift += std::llround(1e9 * tried.fit.unknowns[mixture_.prior().size()].value);
    tried.assumed.response = std::max(
        0.0, tried.assumed.response + tried.fit.unknowns[mixture_.prior().size() + 2].value);
    tried.assumed.drift += tried.fit.unknowns[mixture_.prior().size() + 1].value;
    tried.assumed.late += std::llround(1e9 * tried.fit.unknowns[mixture_.prior().size() + 3].value);
    tried.fit.unknowns.resize(mixture_.prior().size());
  }

  const Traced& traced_;
  Mixture mixture_;
  std::string why_not_;
};

}  // namespace

void fit_units(const Traced& traced, std::vector<UnitCost>& units, Diagnostics& diagnostics) {
  Fitter fitter(traced, units);
  const std::vector<Belief> found = fitter.fit();
  const std::string& why = fitter.why_not();
  const Mixture& mixture = fitter.mixture();
  const auto told = [&](std::size_t one) {
    const Belief &now = found[one], &before = mixture.prior()[one];
    return why.empty() && now.value > 0 && kWiden * now.half_width <= kTold * now.value &&
           kWiden * now.half_width <= kNarrower * before.half_width;
  };
  std::size_t answered = 0, fitted = 0;
  const std::size_t no_group = traced.run.signatures.size();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Usage& usage = traced.spent.usage[i];
    if (!is_missing(units[i], usage)) continue;
    const std::size_t own = mixture.class_of(i);
    const bool pooled = own == mixture.classes();
    const bool good = !pooled && told(own);
    const double scale = pooled ? usage.seconds / usage.calls : 1;
    units[i] = {true,
                scale * found[own].value,
                scale * std::min(kWiden * found[own].half_width, mixture.prior()[own].half_width),
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
