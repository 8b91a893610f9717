#include "facility/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "base/check.h"
#include "facility/queue.h"

namespace joulediff::facility {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kKilowattHour = 3.6e6;  // J

double value_or(InputId id, const std::vector<double>& values, double otherwise) {
  return id.valid() ? values[id.index()] : otherwise;
}

// An alternative with a value for each of its inputs, in units of the service.
struct Replica {
  double joules = 0;
  double throughput = 0;
  double idle = 0;
  double rest = 0;
  double supply = 1;
  double parked = 0;
  double peak = 0;

  Replica(const Alternative& one, const std::vector<double>& values) {
    const double units = value_or(one.work_per_unit, values, 1);
    joules = values[one.joules_per_unit.index()] * units;
    throughput = values[one.throughput.index()] / units;
    idle = values[one.idle_watts.index()];
    rest = value_or(one.rest_watts, values, 0);  // none: the meter saw the node
    supply = value_or(one.supply, values, 1);    // none: the meter was before it
    parked = value_or(one.parked_watts, values, 0);
    peak = value_or(one.peak_watts, values, std::max(joules * throughput, idle));
  }
};

// How many replicas a demand needs, and how much demand so many take in time.
class Sizing {
 public:
  Sizing(const Plan& plan, const Alternative& one, const std::vector<double>& values,
         const Replica& replica)
      : wait_(plan.slo.wait.has_value()) {
    if (wait_) {
      JD_CHECK(one.concurrency.has_value());
      group_ = *one.concurrency;
      queue_ = {replica.throughput / static_cast<double>(group_), *plan.slo.wait, plan.slo.share};
    } else {
      each_ = replica.throughput * values[plan.slo.utilisation.index()];
    }
  }
  // A hair above a whole number of replicas is rounding, not another replica.
  double needed(double demand) const {
    if (wait_) return static_cast<double>(groups_needed(queue_, demand, group_));
    return std::ceil(demand / each_ * (1 - 1e-12));
  }
  std::vector<double> needed(const std::vector<double>& demands) const {
    std::vector<double> result(demands.size(), 0.0);
    if (!wait_) {
      for (std::size_t i = 0; i < demands.size(); ++i) result[i] = needed(demands[i]);
      return result;
    }
    std::vector<std::size_t> order(demands.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return demands[i]; });
    if (order.empty()) return result;
    for (const std::size_t i : {order.front(), order.back()}) result[i] = needed(demands[i]);
    fill(demands, order, result);
    return result;
  }
  double taken(double replicas) const {
    if (wait_) return most_arrivals(queue_, replicas * static_cast<double>(group_));
    return replicas * each_ * (1 + 1e-12);
  }

 private:
  // What lies between the first and the last of `order` (less demand first), whose results are
  // there: more demand never needs fewer replicas. Where these differ by at most 1 %, as only above
  // a hundred of them, the curve between is taken as straight: right to a replica.
  void fill(const std::vector<double>& demands, std::span<const std::size_t> order,
            std::vector<double>& result) const {
    if (order.size() < 3) return;
    const double low = result[order.front()], high = result[order.back()];
    const double first = demands[order.front()], last = demands[order.back()];
    if (high - low <= low / 100) {
      for (const std::size_t i : order.subspan(1, order.size() - 2))
        result[i] = high == low
                        ? low
                        : std::ceil(low + (high - low) * (demands[i] - first) / (last - first));
      return;
    }
    const std::size_t half = order.size() / 2;
    const double demand = demands[order[half]];
    result[order[half]] =
        demand == first  ? low
        : demand == last ? high
                         : static_cast<double>(groups_needed(queue_, demand, group_,
                                                             static_cast<std::int64_t>(low) - 1,
                                                             static_cast<std::int64_t>(high)));
    fill(demands, order.first(half + 1), result);
    fill(demands, order.subspan(half), result);
  }

  bool wait_;
  std::int64_t group_ = 1;
  Queue queue_;
  double each_ = 0;
};

class YearMaker {
 public:
  YearMaker(const Plan& plan, const Alternative& one, const std::vector<double>& values,
            double demand)
      : plan_(plan), one_(one), values_(values), replica_(one, values) {
    const Service& service = plan.service;
    const double scale =
        demand * (service.per_year.valid() ? values[service.per_year.index()]
                                           : values[service.arrivals.level.index()]);
    demand_.reserve(plan.hours.size());
    for (std::size_t h = 0; h < plan.hours.size(); ++h)
      demand_.push_back(scale * (service.weights.empty()
                                     ? service.arrivals.course[h]
                                     : service.weights[h] / plan.hours[h].seconds));
  }

  Year make() {
    size();
    for (std::size_t h = 0; h < plan_.hours.size(); ++h) add_hour(h);
    finish();
    return year_;
  }

 private:
  static double& line(std::array<double, kLines>& lines, Line which) {
    return lines[static_cast<std::size_t>(which)];
  }

  void size() {
    const Sizing sizing(plan_, one_, values_, replica_);
    const double factor = values_[plan_.service.peak_factor.index()];
    const double most = *std::max_element(demand_.begin(), demand_.end()) * factor;
    // Without `replicas` the k spares come on top; with it they are among what there is.
    serving_ = one_.replicas ? std::max(0.0, *one_.replicas - static_cast<double>(plan_.redundancy))
                             : sizing.needed(most);
    year_.installed = one_.replicas ? *one_.replicas : serving_ + plan_.redundancy;
    in_time_ =
        one_.replicas ? sizing.taken(serving_) / factor : std::numeric_limits<double>::infinity();
    if (one_.scaling == Scaling::fixed) return;
    std::vector<double> busiest = demand_;
    for (double& demand : busiest) demand *= factor;
    by_hour_ = sizing.needed(busiest);
  }

  void add_hour(std::size_t h) {
    const double seconds = plan_.hours[h].seconds;
    const double demand = demand_[h];
    const double serving = by_hour_.empty() ? serving_ : by_hour_[h];
    const double running = year_.installed - serving_ + serving;
    const double served = std::min(demand, running * replica_.throughput);
    const double busy = served / replica_.throughput;
    const double waiting = std::max(0.0, serving - busy);
    const double spare = std::max(0.0, running - std::max(serving, busy));

    std::array<double, kLines> lines{};
    const auto line = [&](Line which) -> double& { return YearMaker::line(lines, which); };
    line(Line::work) = served * replica_.joules * seconds;
    line(Line::idle) = waiting * replica_.idle * seconds;
    line(Line::spares) = spare * replica_.idle * seconds;
    line(Line::rest) = running * replica_.rest * seconds;
    const double loss = 1 / replica_.supply - 1;
    line(Line::supply) =
        (lines[0] + line(Line::idle) + line(Line::spares) + line(Line::rest)) * loss;
    line(Line::parked) = (year_.installed - running) * replica_.parked * seconds;
    double nodes = 0;
    for (const double joules : lines) nodes += joules;
    const double pue = plan_.pue.level.valid() ? plan_.pue.at(h, values_) : 1;
    line(Line::cooling) = nodes * (pue - 1);
    const double site = nodes * pue;

    for (std::size_t i = 0; i < kLines; ++i) year_.lines[i] += lines[i];
    year_.nodes += nodes;
    year_.site += site;
    const double unused = running > 0 ? (waiting + spare) / running : 0;
    year_.without_work +=
        pue *
        ((line(Line::idle) + line(Line::spares) + line(Line::rest) * unused) / replica_.supply +
         line(Line::parked));
    year_.arrived += demand * seconds;
    year_.served += served * seconds;
    if (demand <= in_time_) year_.in_time += served * seconds;
    busy_ += busy * seconds;
    running_ += running * seconds;

    const double mean = site / seconds;
    const auto month = static_cast<std::size_t>(plan_.hours[h].local.month - 1);
    months_[month] = std::max(months_[month], mean);
    worst_pue_ = std::max(worst_pue_, pue);
    if (plan_.price.level.valid())
      year_.energy_cost += site / kKilowattHour * plan_.price.at(h, values_);
    if (plan_.carbon.level.valid())
      year_.operation += site / kKilowattHour * plan_.carbon.at(h, values_);
  }

  void finish() {
    year_.utilisation = running_ > 0 ? busy_ / running_ : 0;
    year_.in_time *= value_or(one_.slo_share, values_, plan_.slo.share);
    year_.highest_hour = *std::max_element(months_.begin(), months_.end());
    year_.peak = year_.installed * (replica_.peak + replica_.rest) / replica_.supply * worst_pue_;
    // What the meter saw together with the work is in it, and not known apart.
    if (!one_.rest_watts.valid()) line(year_.lines, Line::rest) = kUnknown;
    if (!one_.supply.valid()) line(year_.lines, Line::supply) = kUnknown;
    costs();
    carbon();
  }

  // An unknown part leaves the sum of the others, and is NaN itself.
  void costs() {
    if (!plan_.price.level.valid()) {
      year_.energy_cost = year_.demand_cost = year_.replica_cost = year_.cost = kUnknown;
      return;
    }
    year_.cost = year_.energy_cost;
    year_.demand_cost = kUnknown;
    year_.replica_cost = kUnknown;
    if (plan_.demand_charge.valid()) {
      year_.demand_cost = 0;
      for (const double watts : months_)
        year_.demand_cost += watts / 1000 * values_[plan_.demand_charge.index()];
      year_.cost += year_.demand_cost;
    }
    if (one_.cost_per_year.valid()) {
      year_.replica_cost = year_.installed * values_[one_.cost_per_year.index()];
      year_.cost += year_.replica_cost;
    }
  }

  void carbon() {
    if (!plan_.carbon.level.valid()) year_.operation = kUnknown;
    year_.embodied = kUnknown;
    if (one_.embodied.valid())
      year_.embodied = year_.installed * values_[one_.embodied.index()] * 1000 *
                       one_.embodied_share / values_[one_.lifetime.index()];
    year_.carbon = year_.operation;
    if (one_.embodied.valid()) year_.carbon += year_.embodied;
  }

  const Plan& plan_;
  const Alternative& one_;
  const std::vector<double>& values_;
  Replica replica_;
  std::vector<double> demand_;   // units a second, by hour
  std::vector<double> by_hour_;  // replicas for the demand; empty: always serving_
  double serving_ = 0;
  double in_time_ = 0;  // demand up to which units are in time
  double busy_ = 0;
  double running_ = 0;
  double worst_pue_ = 1;
  std::array<double, 12> months_{};
  Year year_;
};

}  // namespace

std::string_view name(Line line) {
  switch (line) {
    case Line::work: return "work";
    case Line::idle: return "idle";
    case Line::spares: return "spares";
    case Line::rest: return "rest";
    case Line::supply: return "supply";
    case Line::parked: return "parked";
    case Line::cooling: return "cooling";
  }
  return "?";
}

double Year::of(Plan::Aim aim) const {
  switch (aim) {
    case Plan::Aim::energy: return site;
    case Plan::Aim::cost: return cost;
    case Plan::Aim::carbon: return carbon;
  }
  return kUnknown;
}

Year year_of(const Plan& plan, const Alternative& alternative, const std::vector<double>& values,
             double demand) {
  return YearMaker(plan, alternative, values, demand).make();
}

bool above_peak(const Alternative& alternative, const std::vector<double>& values) {
  const Replica one(alternative, values);
  return std::max(one.joules * one.throughput, one.idle) > one.peak * (1 + 1e-9);
}

double device_joules(const Alternative& alternative, const std::vector<double>& values) {
  return Replica(alternative, values).joules;
}

}  // namespace joulediff::facility
