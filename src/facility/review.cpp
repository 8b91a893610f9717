// What a statement about a site needs, rule by rule. F1 (PUE on energy that has it already, and
// boundaries that differ) refuses where the plan is read; the rest are said here.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "facility/study.h"

namespace joulediff::facility {

namespace {

class Review {
 public:
  explicit Review(const Study& study) : study_(study), plan_(study.plan) {}

  Diagnostics all() {
    boundaries();
    meters();
    pue();
    service();
    peak();
    tariff();
    carbon();
    embodied();
    sensitivity();
    demand();
    return std::move(out_);
  }

 private:
  void say(Severity severity, const char* rule, std::string message) {
    out_.push_back({severity, fmt::format("facility.{}", rule), std::move(message), 1});
  }
  void warn(const char* rule, std::string message) {
    say(Severity::warning, rule, std::move(message));
  }

  void boundaries() {
    const Alternative& first = plan_.alternatives.front();
    for (const Alternative& one : plan_.alternatives)
      if (one.boundary != first.boundary)
        warn("boundaries",
             fmt::format("{} was measured at the {} and {} at the {}; their devices are not "
                         "comparable, their sites are as far as rest_watts and supply are right",
                         printable(first.name), name(first.boundary), printable(one.name),
                         name(one.boundary)));
  }

  void meters() {
    for (const Alternative& one : plan_.alternatives)
      if (one.systematic)
        say(Severity::note, "systematic",
            fmt::format(
                "{} ({}) may read {} wrong throughout, which is in no range: it moves what {} "
                "draws by as much, and ranks nothing where both were read with one meter",
                printable(one.meter), printable(one.from), format_percent(*one.systematic),
                printable(one.name)));
  }

  void pue() {
    if (!plan_.pue.level.valid()) return;
    if (plan_.pue_source.empty())
      warn("pue_source",
           "the PUE has no source; say by pue_source of which period and category it is");
    if (!plan_.pue.varies() && (plan_.price.varies() || plan_.carbon.varies()))
      warn("pue_constant",
           "one PUE holds all year while prices or carbon go by the hour; summer hours may cost "
           "more");
  }

  void service() {
    for (std::size_t i = 0; i < plan_.alternatives.size(); ++i) {
      const Year& year = study_.subjects[i].year;
      const std::string name = printable(plan_.alternatives[i].name);
      if (year.served < year.arrived * (1 - 1e-6))
        say(Severity::error, "unserved",
            fmt::format("{} serves {} of what arrives; give it more replicas", name,
                        format_percent(year.served / year.arrived)));
      else if (year.in_time < year.served * 0.99 * plan_.slo.share)
        say(Severity::error, "late",
            fmt::format("{} has {} of its units in time; give it more replicas", name,
                        format_percent(year.in_time / year.served)));
      capacity(i, name);
    }
    if (!study_.same_work && plan_.alternatives.size() > 1)
      say(Severity::error, "unequal_work",
          "the alternatives do not do the same work, so none is ranked above another");
  }

  // Now, at the high end of its range, and after the growth.
  void capacity(std::size_t i, const std::string& name) {
    if (!plan_.capacity) return;
    const auto& all = measures();
    const auto peak =
        std::find_if(all.begin(), all.end(), [](const Measure& one) { return one.key == "peak"; });
    const Range& range = study_.subjects[i].values[static_cast<std::size_t>(peak - all.begin())];
    const double grown = study_.demand.peak.empty() ? 0 : study_.demand.peak[i].high;
    const auto say = [&](std::string_view how, double watts) {
      warn("capacity", fmt::format("{} {} {}, and the site gives {}", name, how,
                                   format(Watts(watts)), format(Watts(*plan_.capacity))));
    };
    if (range.base > *plan_.capacity)
      say("peaks at", range.base);
    else if (range.high > *plan_.capacity)
      say("may peak at", range.high);
    else if (grown > *plan_.capacity)
      say("may, after the growth, peak at", grown);
  }

  void peak() {
    const auto base = [&](InputId id) { return plan_.inputs[id.index()].range.base; };
    for (const Alternative& one : plan_.alternatives) {
      const double load = base(one.joules_per_unit) * base(one.throughput);
      if (load < base(one.idle_watts))
        warn("load_below_idle",
             fmt::format("{} draws {} at load and {} while it waits; is one of them of another "
                         "boundary?",
                         printable(one.name), format(Watts(load)),
                         format(Watts(base(one.idle_watts)))));
      if (one.peak_watts.valid() && above_peak(one, plan_.base_values()))
        warn("peak_below_load",
             fmt::format("{} has peak_watts of {}, which is less than it draws at load ({}) or "
                         "while it waits ({})",
                         printable(one.name), format(Watts(base(one.peak_watts))),
                         format(Watts(load)), format(Watts(base(one.idle_watts)))));
      if (!one.peak_watts.valid())
        warn("peak_from_mean",
             fmt::format("{} has no peak_watts, so its mean at load stands for its peak; measured "
                         "peaks are higher",
                         printable(one.name)));
    }
  }

  void tariff() {
    if (!plan_.price.level.valid()) return;
    if (!plan_.price.varies())
      warn("tariff_flat",
           "the price is the same in all hours; most contracts differ by time of use");
    if (!plan_.demand_charge.valid())
      warn("demand_charge", "no demand_charge is given; if the contract has none, say 0");
    if (plan_.tariff_source.empty())
      warn("tariff_source", "the tariff has no source; say of which contract and date it is");
  }

  void carbon() {
    if (!plan_.carbon.level.valid()) return;
    if (!plan_.carbon.varies())
      warn("carbon_yearly",
           "one carbon intensity holds all year; hourly data shows what the hours of use emit");
    if (plan_.carbon_basis == "market")
      warn("carbon_market",
           "intensities by market (contracts) make no SCI, which ISO/IEC 21031 has by location");
  }

  void embodied() {
    if (!plan_.carbon.level.valid()) return;
    for (const Alternative& one : plan_.alternatives) {
      if (!one.embodied.valid())
        warn("embodied",
             fmt::format("{} has no [embodied], so its SCI is unknown", printable(one.name)));
      else if (one.embodied_source.empty())
        warn("embodied_source",
             fmt::format("{}: the embodied carbon has no source", printable(one.name)));
    }
  }

  void sensitivity() {
    for (const Pair& pair : study_.pairs)
      for (const BreakEven& one : pair.break_even) {
        if (!one.within_range) continue;
        const Input& input = plan_.inputs[one.input.index()];
        warn("flips",
             fmt::format("{} and {} change places at {} = {:.4g}{}{}, which is within its range",
                         printable(plan_.alternatives[pair.best].name),
                         printable(plan_.alternatives[pair.other].name), printable(input.key),
                         one.value, input.unit.empty() ? "" : " ", printable(input.unit)));
      }
    std::uint64_t single = 0;
    std::string first;
    for (const Input& input : plan_.inputs) {
      if (input.ranged) continue;
      if (single++ == 0) first = input.key;
    }
    if (single > 0)
      out_.push_back({Severity::note, "facility.no_range",
                      single == 1
                          ? fmt::format("{} has no range, so it widens nothing", printable(first))
                          : fmt::format("{} and {} other inputs have no range, so they "
                                        "widen nothing",
                                        printable(first), single - 1),
                      single});
  }

  void demand() {
    if (plan_.alternatives.size() > 1 && !plan_.service.rebound.valid())
      warn("rebound",
           "no rebound is given; what a unit saves is no total saving where cheaper units are used "
           "more");
    if (!plan_.service.growth.valid())
      warn("growth", "no growth is given; the plan is of a year in which demand stands still");
  }

  const Study& study_;
  const Plan& plan_;
  Diagnostics out_;
};

}  // namespace

Diagnostics review(const Study& study) {
  return Review(study).all();
}

}  // namespace joulediff::facility
