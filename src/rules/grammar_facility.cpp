// From a device to a site: never mixed with a score of a device. These speak only where a
// measurement says that it makes a claim about a facility.
#include "rules/grammar_rules.h"

namespace joulediff::rules {
namespace {

bool stated(const Point& p) {
  return p.facility.stated.value_or(false);
}

}  // namespace

Objected pue(const Point& p) {
  const auto& f = p.facility;
  if (!stated(p) || !f.pue) return {};
  if (*f.pue < 1)
    return object(Severity::error, fmt::format("a PUE of {} is impossible", said(f.pue)),
                  "a site draws at least what its machines draw");
  if (f.energy_boundary == "facility")
    return object(Severity::error, "a PUE is applied to energy that holds the facility already",
                  "apply it to the energy of the machines alone");
  if (f.cooling == "liquid")
    return object(Severity::error,
                  "a PUE is applied to liquid-cooled machines, whose fans are outside the meter",
                  "meter the pumps, and use the partial PUE of the rest");
  if (f.annual_for_hourly.value_or(false))
    return object(Severity::warning, "a year's mean PUE is used for a claim about hours",
                  "use the PUE of those hours");
  return {};
}

Objected pue_equal(const Point& a, const Point& b) {
  if (!stated(a) || !stated(b)) return {};
  Differences d;
  d.of("PUE", a.facility.pue, b.facility.pue).of("site", a.facility.pue_site, b.facility.pue_site);
  if (!d.any() || (a.claim.empty() && b.claim.empty())) return {};
  return object(Severity::error,
                fmt::format("a claim about {} rests on different sites: {}",
                            a.claim.empty() ? b.claim : a.claim, d.text()),
                "put both into one site");
}

Objected facility_utilisation(const Point& p) {
  if (!stated(p) || p.facility.utilisation) return {};
  return object(Severity::warning, "the utilisation is not stated",
                "state it: J/item = (u P_load + (1 - u) P_idle) / (u items/s)");
}

Objected capacity(const Point& p) {
  if (!stated(p) || !p.facility.mean_watts || p.facility.peak_watts) return {};
  return object(Severity::warning, "only the mean power is given, a site is built for its peak",
                "give the 99th percentile of 1 s, and the largest");
}

Objected price(const Point& p) {
  const auto& f = p.facility;
  if (!stated(p) || f.tariff.empty()) return {};
  std::string lacks;
  if (f.tariff == "flat") lacks += "the time of use, ";
  if (!f.demand_charge) lacks += "the charge for demand, ";
  if (f.currency.empty()) lacks += "its currency, ";
  if (f.price_date.empty()) lacks += "its date, ";
  if (lacks.empty()) return {};
  return object(Severity::warning,
                fmt::format("the price lacks {}", lacks.substr(0, lacks.size() - 2)),
                "give the whole tariff");
}

Objected carbon(const Point& p) {
  const auto& f = p.facility;
  if (!stated(p) || (f.carbon_zone.empty() && f.carbon_kind.empty() && !f.carbon_step_hours))
    return {};
  std::string lacks;
  if (f.carbon_zone.empty()) lacks = "no zone is stated";
  if (f.carbon_kind != "average" && f.carbon_kind != "marginal")
    lacks = "whether it is average or marginal is not stated";
  if (!f.carbon_step_hours) lacks = "the step is not stated";
  if (f.carbon_step_hours && *f.carbon_step_hours > 1)
    lacks = fmt::format("the step is {} h, longer than an hour", said(f.carbon_step_hours));
  if (lacks.empty()) return {};
  return object(Severity::warning, fmt::format("of the carbon intensity, {}", lacks),
                "use an hourly series of one zone and kind");
}

Objected carbon_equal(const Point& a, const Point& b) {
  if (!stated(a) || !stated(b) || !differ(a.facility.carbon_kind, b.facility.carbon_kind))
    return {};
  return object(Severity::error,
                fmt::format("a uses {} carbon intensity, b {}", a.facility.carbon_kind,
                            b.facility.carbon_kind),
                "use one kind for both");
}

Objected embodied(const Point& p) {
  const auto& f = p.facility;
  if (!stated(p) || !f.embodied_kg || (f.lifetime_years && f.resource_share)) return {};
  return object(Severity::warning,
                fmt::format("embodied carbon of {} kg without {}", said(f.embodied_kg),
                            !f.lifetime_years ? "a lifetime" : "the share of the resource"),
                "state lifetime, share and source");
}

Objected sensitivity(const Point& p) {
  const auto& f = p.facility;
  if (!stated(p)) return {};
  if (f.flips.value_or(false) && !f.flip_stated.value_or(false))
    return object(Severity::error, "the claim turns around within its own ranges, unsaid",
                  "state the value at which the ranking flips");
  if (!f.sensitivity.empty()) return {};
  return object(Severity::warning, "nobody tried what the claim depends on",
                "vary utilisation, PUE, price, intensity, quality, latency, lifetime, idle");
}

Objected rebound(const Point& p) {
  if (!stated(p) || !p.facility.total_saving_claimed.value_or(false) ||
      p.facility.demand_term.value_or(false))
    return {};
  return object(Severity::note, "a saving for each unit is called a total saving",
                "add how demand answers to the lower cost");
}

}  // namespace joulediff::rules
