#include "facility/study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace joulediff::facility {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNone = 1e-9;  // a difference of rounding
constexpr Range kNothing{kUnknown, kUnknown, kUnknown};

// Adds up what single changes move a value by, upwards and downwards apart: of the two ends of one
// input that move it the same way, the larger. A bound that no single change breaks (0 of energies)
// is not broken by their sum.
class Spread {
 public:
  Spread(double base, double least, double most) : base_(base), least_(least), most_(most) {
    reach(base);
  }
  void add(double low, double high) {
    up_ = std::hypot(up_, std::max({0.0, low - base_, high - base_}));
    down_ = std::hypot(down_, std::max({0.0, base_ - low, base_ - high}));
    reach(low);
    reach(high);
  }
  Range range() const {
    return {std::max(least_, base_ - down_), base_, std::min(most_, base_ + up_)};
  }

 private:
  void reach(double value) {
    if (value < least_) least_ = -kInfinite;
    if (value > most_) most_ = kInfinite;
  }

  double base_ = 0;
  double least_ = 0;
  double most_ = 0;
  double up_ = 0;
  double down_ = 0;
};

bool uses(const Signal& signal, InputId input) {
  return signal.level == input;
}

bool shared(const Plan& plan, InputId input) {
  const Service& service = plan.service;
  return service.per_year == input || uses(service.arrivals, input) ||
         service.peak_factor == input || plan.slo.utilisation == input || uses(plan.pue, input) ||
         uses(plan.price, input) || plan.demand_charge == input || uses(plan.carbon, input);
}

bool uses(const Alternative& one, InputId input) {
  for (const InputId id : {one.joules_per_unit, one.throughput, one.work_per_unit, one.idle_watts,
                           one.peak_watts, one.rest_watts, one.supply, one.parked_watts,
                           one.slo_share, one.cost_per_year, one.embodied, one.lifetime})
    if (id == input) return true;
  return false;
}

class Students {
 public:
  explicit Students(Study& study) : study_(study), base_(study.plan.base_values()) {
    for (const Alternative& one : study.plan.alternatives)
      years_.push_back(year_of(study.plan, one, base_));
  }

  void make() {
    make_subjects();
    rank();
    for (std::size_t i = 1; i < study_.ranking.size(); ++i)
      study_.pairs.push_back(pair(study_.ranking[0], study_.ranking[i]));
    grow();
    for (const Pair& one : study_.pairs) study_.rebound.push_back(rebound(one));
  }

 private:
  const Plan& plan() const { return study_.plan; }

  // The year with one input changed; as it was where the input is no concern of the alternative.
  Year year(std::size_t alternative, InputId input, double value) const {
    const Alternative& one = plan().alternatives[alternative];
    if (!shared(plan(), input) && !uses(one, input)) return years_[alternative];
    std::vector<double> values = base_;
    values[input.index()] = value;
    return year_of(plan(), one, values);
  }

  void make_subjects() {
    for (std::size_t a = 0; a < years_.size(); ++a) {
      const Alternative& one = plan().alternatives[a];
      Subject subject;
      subject.year = years_[a];
      std::vector<Spread> spreads;
      for (const Measure& measure : measures())
        spreads.emplace_back(measure.of(years_[a]), 0, measure.unit == "ratio" ? 1 : kInfinite);
      Spread device(device_joules(one, base_), 0, kInfinite);
      for (std::size_t i = 0; i < plan().inputs.size(); ++i) {
        const Input& input = plan().inputs[i];
        const InputId id(i);
        if (!input.ranged || (!shared(plan(), id) && !uses(one, id))) continue;
        const Year low = year(a, id, input.range.low);
        const Year high = year(a, id, input.range.high);
        for (std::size_t m = 0; m < spreads.size(); ++m)
          spreads[m].add(measures()[m].of(low), measures()[m].of(high));
        device.add(device_with(one, id, input.range.low), device_with(one, id, input.range.high));
      }
      for (const Spread& spread : spreads) subject.values.push_back(spread.range());
      for (std::size_t m = 0; m < spreads.size(); ++m) {
        if (measures()[m].key != "installed") continue;  // there is no half a replica
        subject.values[m].low = std::floor(subject.values[m].low);
        subject.values[m].high = std::ceil(subject.values[m].high);
      }
      subject.device = device.range();
      subject.device_standing = plan().inputs[one.joules_per_unit.index()].standing;
      if (one.work_per_unit.valid())
        subject.device_standing =
            std::max(subject.device_standing, plan().inputs[one.work_per_unit.index()].standing);
      study_.subjects.push_back(std::move(subject));
    }
  }

  double device_with(const Alternative& one, InputId input, double value) const {
    std::vector<double> values = base_;
    values[input.index()] = value;
    return device_joules(one, values);
  }

  // Equal work first: where one leaves units unserved or late that another does not, no order is
  // given.
  void rank() {
    constexpr double kEqual = 1e-6;
    for (const Year& year : years_)
      if (year.served < year.arrived * (1 - kEqual) || year.in_time < years_[0].in_time * 0.99 ||
          year.in_time > years_[0].in_time * 1.01)
        return;
    study_.same_work = true;
    if (years_.size() < 2) return;
    study_.ranking.resize(years_.size());
    std::iota(study_.ranking.begin(), study_.ranking.end(), std::size_t{0});
    std::sort(study_.ranking.begin(), study_.ranking.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(years_[a].of(plan().aim), a) < std::pair(years_[b].of(plan().aim), b);
    });
  }

  double gap(std::size_t best, std::size_t other, InputId input, double value) const {
    return difference(year(best, input, value).of(plan().aim),
                      year(other, input, value).of(plan().aim));
  }

  Pair pair(std::size_t best, std::size_t other) const {
    Pair pair;
    pair.best = best;
    pair.other = other;
    const double base = difference(years_[best].of(plan().aim), years_[other].of(plan().aim));
    Spread spread(base, -1, 1);
    for (std::size_t i = 0; i < plan().inputs.size(); ++i) {
      const Input& input = plan().inputs[i];
      const InputId id(i);
      const auto turns = break_even(best, other, id, base);
      if (input.ranged) {
        const Swing swing{id, gap(best, other, id, input.range.low),
                          gap(best, other, id, input.range.high)};
        spread.add(swing.at_low, swing.at_high);
        // Where replicas leap the order may turn between ends at which it holds.
        if (turns && turns->within_range && swing.at_low > 0 && swing.at_high > 0)
          spread.add(0, base);
        if (swing.width() > kNone) pair.tornado.push_back(swing);
      }
      if (turns) pair.break_even.push_back(*turns);
    }
    pair.difference = spread.range();
    std::sort(pair.tornado.begin(), pair.tornado.end(), [](const Swing& a, const Swing& b) {
      return std::tuple(-a.width(), a.input) < std::tuple(-b.width(), b.input);
    });
    std::sort(pair.break_even.begin(), pair.break_even.end(),
              [&](const BreakEven& a, const BreakEven& b) {
                return std::tuple(!a.within_range, distance(a), a.input) <
                       std::tuple(!b.within_range, distance(b), b.input);
              });
    return pair;
  }

  double distance(const BreakEven& one) const {
    const double base = plan().inputs[one.input.index()].range.base;
    return base > 0 && one.value > 0 ? std::fabs(std::log(one.value / base))
                                     : std::fabs(one.value - base);
  }

  // The value nearest to the base at which the sign of the difference turns, looked for within what
  // the input can be, a factor of kReach to both sides (or its range, if that is wider).
  std::optional<BreakEven> break_even(std::size_t best, std::size_t other, InputId id,
                                      double base_gap) const {
    constexpr double kReach = 10;
    constexpr int kSteps = 48;
    const Input& input = plan().inputs[id.index()];
    const double base = input.range.base;
    const auto& alternatives = plan().alternatives;
    if (!shared(plan(), id) && !uses(alternatives[best], id) && !uses(alternatives[other], id))
      return std::nullopt;
    double low = input.range.low;
    double high = input.range.high;
    if (base > 0) {
      low = std::min(low, base / kReach);
      high = std::max(high, base * kReach);
    }
    low = std::max(low, input.least);
    high = std::min(high, input.most);
    if (gap(best, other, id, low) == base_gap && gap(best, other, id, high) == base_gap)
      return std::nullopt;
    std::optional<BreakEven> found;
    for (const double end : {low, high}) {
      double before = base;
      for (int step = 1; step <= kSteps && end != base; ++step) {
        const double share = static_cast<double>(step) / kSteps;
        const double here =
            base > 0 && end > 0 ? base * std::pow(end / base, share) : base + (end - base) * share;
        if (!possible(best, id, here) || !possible(other, id, here)) break;
        if (gap(best, other, id, here) >= 0) {
          before = here;
          continue;
        }
        const double value = bisect(best, other, id, before, here);
        const BreakEven one{id, value,
                            input.ranged && value >= input.range.low && value <= input.range.high};
        if (!found || distance(one) < distance(*found)) found = one;
        break;
      }
    }
    return found;
  }

  // A replica never draws more than its peak, unless the plan itself says so.
  bool possible(std::size_t alternative, InputId id, double value) const {
    const Alternative& one = plan().alternatives[alternative];
    if (!one.peak_watts.valid() || !uses(one, id) || above_peak(one, base_)) return true;
    std::vector<double> values = base_;
    values[id.index()] = value;
    return !above_peak(one, values);
  }

  double bisect(std::size_t best, std::size_t other, InputId id, double still,
                double turned) const {
    for (int i = 0; i < 40; ++i) {
      const double middle = (still + turned) / 2;
      (gap(best, other, id, middle) >= 0 ? still : turned) = middle;
    }
    return (still + turned) / 2;
  }

  void grow() {
    Demand& demand = study_.demand;
    demand.factor = kNothing;
    if (!plan().service.growth.valid()) return;
    const Range& growth = plan().inputs[plan().service.growth.index()].range;
    const auto factor = [&](double by) { return std::pow(1 + by, plan().service.years); };
    demand.factor = {factor(growth.low), factor(growth.base), factor(growth.high)};
    for (const Alternative& one : plan().alternatives) {
      const Year low = year_of(plan(), one, base_, demand.factor.low);
      const Year base = year_of(plan(), one, base_, demand.factor.base);
      const Year high = year_of(plan(), one, base_, demand.factor.high);
      demand.energy.push_back({low.site, base.site, high.site});
      demand.replicas.push_back({low.installed, base.installed, high.installed});
      demand.peak.push_back({low.peak, base.peak, high.peak});
    }
  }

  // Rebound r = 1 - actual saving / saving at equal demand, so r of the saving is taken back.
  Rebound rebound(const Pair& pair) const {
    Rebound out;
    out.saving = years_[pair.other].of(plan().aim) - years_[pair.best].of(plan().aim);
    out.share = out.taken_back = out.left = kNothing;
    if (!plan().service.rebound.valid()) return out;
    const Range& share = plan().inputs[plan().service.rebound.index()].range;
    out.share = share;
    out.taken_back = {share.low * out.saving, share.base * out.saving, share.high * out.saving};
    out.left = {out.saving - out.taken_back.high, out.saving - out.taken_back.base,
                out.saving - out.taken_back.low};
    return out;
  }

  Study& study_;
  std::vector<double> base_;
  std::vector<Year> years_;
};

}  // namespace

double difference(double best, double other) {
  const double most = std::max(std::fabs(best), std::fabs(other));
  return most > 0 ? (other - best) / most : 0;
}

Study study(Plan plan) {
  Study study;
  study.plan = std::move(plan);
  Students(study).make();
  study.diagnostics = study.plan.diagnostics;
  for (Diagnostic& one : review(study)) study.diagnostics.push_back(std::move(one));
  return study;
}

}  // namespace joulediff::facility
