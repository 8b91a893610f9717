// The lines of a report, one row each.
#include <limits>

#include "facility/study.h"

namespace joulediff::facility {

namespace {

template <Line line>
double joules(const Year& year) {
  return year[line];
}

double per(double amount, double units) {
  return units > 0 ? amount / units : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::string_view title(Section section) {
  switch (section) {
    case Section::service: return "Service";
    case Section::replicas: return "Replicas";
    case Section::energy: return "Energy of the year";
    case Section::per_unit: return "Energy per unit of work";
    case Section::power: return "Power";
    case Section::cost: return "Cost of the year";
    case Section::carbon: return "Carbon of the year";
  }
  return "?";
}

const std::vector<Measure>& measures() {
  constexpr Boundary kNode = Boundary::node;
  constexpr Boundary kSite = Boundary::facility;
  static const std::vector<Measure> all{
      {Section::service, "arrived", "arrived", "unit", {}, [](const Year& y) { return y.arrived; }},
      {Section::service, "served", "served", "unit", {}, [](const Year& y) { return y.served; }},
      {Section::service,
       "in_time",
       "in time (SLO)",
       "unit",
       {},
       [](const Year& y) { return y.in_time; }},
      {Section::replicas,
       "installed",
       "installed, with spares",
       "",
       {},
       [](const Year& y) { return y.installed; }},
      {Section::replicas,
       "utilisation",
       "utilisation of what runs",
       "ratio",
       {},
       [](const Year& y) { return y.utilisation; }},
      {Section::energy, "work", "work", "J", kNode, joules<Line::work>},
      {Section::energy, "idle", "waiting for work", "J", kNode, joules<Line::idle>},
      {Section::energy, "spares", "spare replicas", "J", kNode, joules<Line::spares>},
      {Section::energy, "rest", "rest of the nodes", "J", kNode, joules<Line::rest>},
      {Section::energy, "supply", "power supplies", "J", kNode, joules<Line::supply>},
      {Section::energy, "parked", "parked replicas", "J", kNode, joules<Line::parked>},
      {Section::energy, "cooling", "site beside nodes (PUE)", "J", kSite, joules<Line::cooling>},
      {Section::energy, "site_energy", "the site", "J", kSite,
       [](const Year& y) { return y.site; }},
      {Section::energy, "without_work", "of it without useful work", "J", kSite,
       [](const Year& y) { return y.without_work; }},
      {Section::per_unit, "node_joules_per_unit", "at the nodes", "J/unit", kNode,
       [](const Year& y) { return per(y.nodes, y.served); }},
      {Section::per_unit, "idle_joules_per_unit", "of it waiting and spares", "J/unit", kNode,
       [](const Year& y) { return per(y[Line::idle] + y[Line::spares], y.served); }},
      {Section::per_unit, "site_joules_per_unit", "at the site", "J/unit", kSite,
       [](const Year& y) { return per(y.site, y.served); }},
      {Section::per_unit, "site_joules_per_unit_in_time", "at the site, per unit in time", "J/unit",
       kSite, [](const Year& y) { return per(y.site, y.in_time); }},
      {Section::power, "peak", "peak, for capacity", "W", kSite,
       [](const Year& y) { return y.peak; }},
      {Section::power, "highest_hour", "mean of the highest hour", "W", kSite,
       [](const Year& y) { return y.highest_hour; }},
      {Section::cost,
       "energy_cost",
       "energy",
       "currency",
       {},
       [](const Year& y) { return y.energy_cost; }},
      {Section::cost,
       "demand_cost",
       "demand charge",
       "currency",
       {},
       [](const Year& y) { return y.demand_cost; }},
      {Section::cost,
       "replica_cost",
       "replicas",
       "currency",
       {},
       [](const Year& y) { return y.replica_cost; }},
      {Section::cost,
       "cost",
       "sum of what is known",
       "currency",
       {},
       [](const Year& y) { return y.cost; }},
      {Section::carbon, "operation", "operation (E x I)", "g", kSite,
       [](const Year& y) { return y.operation; }},
      {Section::carbon,
       "embodied",
       "embodied (M)",
       "g",
       {},
       [](const Year& y) { return y.embodied; }},
      {Section::carbon, "carbon", "sum of what is known", "g", kSite,
       [](const Year& y) { return y.carbon; }},
      {Section::carbon, "sci", "per unit: (E x I + M) / R", "g/unit", kSite,
       [](const Year& y) { return per(y.operation + y.embodied, y.served); }},
  };
  return all;
}

}  // namespace joulediff::facility
