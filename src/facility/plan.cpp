#include "facility/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/format.h"
#include "facility/document.h"
#include "facility/plan_inputs.h"

namespace joulediff::facility {

namespace {

constexpr double kPositive = 1e-12;
constexpr double kHuge = 1e18;
constexpr std::size_t kAlternatives = 20;

class PlanReader {
 public:
  PlanReader(const std::string& file, const Surroundings& from)
      : file_(file), from_(from), inputs_(plan_, from) {}

  Result<Plan> read(std::string_view bytes) {
    JD_ASSIGN(const Node document, read_toml(bytes, file_));
    const TableReader top(document, file_);
    JD_TRY(head(top));
    JD_ASSIGN(const TableReader service, section(top, "service"));
    JD_TRY(read_service(service));
    JD_ASSIGN(const TableReader slo, section(top, "slo"));
    JD_TRY(read_slo(slo));
    JD_ASSIGN(const auto tariff, top.table("tariff"));
    if (tariff) JD_TRY(read_tariff(*tariff));
    JD_ASSIGN(const auto replica, top.table("replica"));
    if (replica) {
      JD_TRY(read_replica(*replica, "replica", common_));
      JD_TRY(replica->finish());
    }
    JD_TRY(read_alternatives(top));
    JD_ASSIGN(const TableReader site, section(top, "site"));
    JD_TRY(read_site(site));
    JD_ASSIGN(const auto carbon, top.table("carbon"));
    if (carbon) JD_TRY(read_carbon(*carbon));
    JD_TRY(read_aim(top));
    JD_TRY(top.finish());
    return std::move(plan_);
  }

 private:
  static Result<TableReader> section(const TableReader& top, const char* name) {
    JD_ASSIGN(const auto table, top.table(name));
    if (!table) return top.wrong(fmt::format("the section [{}] is missing", name));
    return *table;
  }

  // What stands in every table of the report.
  static Status is_short(const TableReader& table, const char* key, const std::string& text) {
    constexpr std::size_t kMost = 40;
    if (width_of(printable(text)) <= kMost) return {};
    return table.wrong(*table.find(key), fmt::format("give at most {} letters", kMost));
  }

  Status head(const TableReader& top) {
    JD_ASSIGN(const std::string schema,
              top.needed_text("schema", "it is \"joulediff.plan/1\" for this version"));
    if (schema != "joulediff.plan/1")
      return top.wrong(*top.find("schema"),
                       fmt::format("{} is not read here; joulediff.plan/1 is", printable(schema)));
    JD_ASSIGN(const auto title, top.text("title"));
    plan_.title = title.value_or("");
    JD_ASSIGN(const std::string zone, top.needed_text("zone",
                                                      "where the site's clocks are, as in "
                                                      "\"Europe/Berlin\""));
    Result<Zone> found = Zone::named(zone);
    if (!found && found.error().code == ExitCode::bad_input)
      return top.wrong(*top.find("zone"), found.error().message);
    JD_ASSIGN(plan_.zone, std::move(found));
    JD_ASSIGN(const auto year, top.whole("year", kFirstYear + 1, kLastYear));
    if (!year) return top.wrong("year is missing: the year that is planned, as in 2027");
    plan_.year = *year;
    plan_.hours = hours_of_year(plan_.zone, plan_.year);
    return {};
  }

  Status read_service(const TableReader& table) {
    Service& service = plan_.service;
    JD_ASSIGN(service.unit, table.needed_text("unit", "what is served, as in \"request\""));
    JD_TRY(is_short(table, "unit", service.unit));
    JD_ASSIGN(service.per_year,
              inputs_.input(table, "per_year", "service", {"", kPositive, kHuge}));
    JD_ASSIGN(service.arrivals,
              inputs_.signal(table, "arrivals", "service", {"", 0, kHuge}, Content::demand));
    if (service.per_year.valid() == service.arrivals.level.valid())
      return table.wrong("give per_year (units, with a profile) or arrivals (a file of counts)");
    if (service.per_year.valid()) {
      JD_ASSIGN(service.weights, inputs_.weights(table, "profile"));
    } else if (!service.arrivals.varies()) {
      return table.wrong(*table.find("arrivals"), "give a file; a yearly number is per_year");
    }
    JD_ASSIGN(service.peak_factor,
              inputs_.needed(table, "peak_factor", "service", {"", 1, 1000},
                             "the rate of the busiest minutes over the mean of their hour; 1 if "
                             "arrivals are even"));
    JD_ASSIGN(service.growth, inputs_.input(table, "growth", "service", {"", -0.99, 100}));
    JD_ASSIGN(const auto years, table.whole("years", 1, 50));
    service.years = years.value_or(1);
    JD_TRY(check_growth(table));
    JD_ASSIGN(service.rebound, inputs_.input(table, "rebound", "service", {"", 0, 10}));
    return table.finish();
  }

  Status check_growth(const TableReader& table) const {
    if (!plan_.service.growth.valid()) return {};
    constexpr double kMost = 1e6;
    const double high = plan_.inputs[plan_.service.growth.index()].range.high;
    const double factor = std::pow(1 + high, plan_.service.years);
    if (factor <= kMost) return {};
    return table.wrong(*table.find("growth"),
                       fmt::format("over {} years it comes to {:.3g} times the demand; it is a "
                                   "ratio a year, 0.2 for 20 %",
                                   plan_.service.years, factor));
  }

  Status read_slo(const TableReader& table) {
    Slo& slo = plan_.slo;
    JD_ASSIGN(const auto share, table.number("share", 0.5, 0.9999999));
    if (!share)
      return table.wrong("share is missing: the share of units that must be in time, as in 0.99");
    slo.share = *share;
    JD_ASSIGN(slo.utilisation, inputs_.input(table, "utilisation", "slo", {"", 0.001, 1}));
    JD_ASSIGN(slo.wait, table.number("wait", 0, 1e6));
    if (slo.utilisation.valid() == slo.wait.has_value())
      return table.wrong(
          "give utilisation (up to which a load test was in time) or wait (seconds, "
          "for queueing)");
    return table.finish();
  }

  Status read_site(const TableReader& table) {
    const bool facility =
        std::any_of(plan_.alternatives.begin(), plan_.alternatives.end(),
                    [](const Alternative& one) { return one.boundary == Boundary::facility; });
    JD_ASSIGN(plan_.pue, inputs_.signal(table, "pue", "site", {"", 1, 10}, Content::pue, 1));
    if (facility && plan_.pue.level.valid())
      return table.wrong(*table.find("pue"),
                         "an alternative's energy is of the facility and has the PUE in it; give "
                         "its energy at the node, or no pue");
    if (!facility && !plan_.pue.level.valid())
      return table.wrong("pue is missing: the site's energy over that of its nodes, 1 or more");
    JD_ASSIGN(const auto source, table.text("pue_source"));
    plan_.pue_source = source.value_or("");
    JD_ASSIGN(const auto redundancy, table.whole("redundancy", 0, 100000));
    if (!redundancy)
      return table.wrong("redundancy is missing: how many spare replicas there are, 0 for none");
    plan_.redundancy = *redundancy;
    JD_ASSIGN(const auto capacity, table.number("capacity_kw", kPositive, kHuge));
    if (capacity) plan_.capacity = *capacity * 1000;
    return table.finish();
  }

  Status read_tariff(const TableReader& table) {
    JD_ASSIGN(plan_.currency, table.needed_text("currency", "as in \"EUR\""));
    if (plan_.currency.size() > 8 || printable(plan_.currency) != plan_.currency)
      return table.wrong(*table.find("currency"), "give a short code, as in \"EUR\"");
    JD_TRY(table.need("energy", fmt::format("the price of a kWh in {}", plan_.currency)));
    JD_ASSIGN(plan_.price, inputs_.signal(table, "energy", "tariff",
                                          {plan_.currency + "/kWh", -1e6, 1e6}, Content::price));
    JD_ASSIGN(plan_.demand_charge,
              inputs_.input(table, "demand_charge", "tariff", {plan_.currency + "/kW", 0, 1e9}));
    JD_ASSIGN(const auto source, table.text("source"));
    plan_.tariff_source = source.value_or("");
    return table.finish();
  }

  Status read_carbon(const TableReader& table) {
    JD_TRY(table.need("intensity", "g of CO2e a kWh: a number, a range or a file"));
    JD_ASSIGN(plan_.carbon, inputs_.signal(table, "intensity", "carbon", {"g/kWh", -5000, 5000},
                                           Content::carbon));
    JD_ASSIGN(plan_.carbon_zone, table.needed_text("zone", "the grid's, as in \"DE\""));
    const std::vector<std::string> kinds{"average", "marginal"};
    const std::vector<std::string> bases{"location", "market"};
    JD_TRY(table.need("kind", "average or marginal"));
    JD_ASSIGN(const std::size_t kind, table.choice("kind", kinds));
    plan_.carbon_kind = kinds[kind];
    const std::string& said = inputs_.carbon_kind();
    if (!said.empty() && said != plan_.carbon_kind)
      return table.wrong(*table.find("kind"), fmt::format("the file has {} intensities ({})", said,
                                                          plan_.carbon.provider));
    JD_TRY(table.need("basis", "location or market"));
    JD_ASSIGN(const std::size_t basis, table.choice("basis", bases));
    plan_.carbon_basis = bases[basis];
    return table.finish();
  }

  Status read_aim(const TableReader& top) {
    JD_ASSIGN(const std::size_t aim, top.choice("rank_by", {"energy", "cost", "carbon"}));
    plan_.aim = static_cast<Plan::Aim>(aim);
    if (plan_.aim == Plan::Aim::cost && !plan_.price.level.valid())
      return top.wrong(*top.find("rank_by"), "there is no [tariff] to rank by");
    if (plan_.aim == Plan::Aim::carbon && !plan_.carbon.level.valid())
      return top.wrong(*top.find("rank_by"), "there is no [carbon] to rank by");
    return {};
  }

  Status read_alternatives(const TableReader& top) {
    const Node* list = top.find("alternatives");
    if (list == nullptr || list->array() == nullptr || list->array()->empty())
      return top.wrong("there is no alternative: give at least one [[alternatives]]");
    if (list->array()->size() > kAlternatives)
      return top.wrong(*list, fmt::format("at most {} alternatives are read", kAlternatives));
    static const std::set<std::string> kSections{"service", "slo",    "site",
                                                 "tariff",  "carbon", "replica"};
    std::set<std::string> names;
    for (const Node& node : *list->array()) {
      if (node.table() == nullptr) return top.wrong(node, "give a table, [[alternatives]]");
      const TableReader table(node, file_);
      JD_ASSIGN(Alternative one, read_alternative(table));
      if (kSections.contains(one.name))
        return table.wrong(*table.find("name"),
                           "a section of the plan has this name, and its numbers too");
      if (!names.insert(one.name).second)
        return table.wrong(*table.find("name"), "another alternative has this name");
      plan_.alternatives.push_back(std::move(one));
    }
    return {};
  }

  Result<Alternative> read_alternative(const TableReader& table) {
    Alternative one = common_;
    JD_ASSIGN(one.name, table.needed_text("name", "what the alternative is called"));
    JD_TRY(is_short(table, "name", one.name));
    JD_ASSIGN(const auto from, table.text("from"));
    one.from = from.value_or("");
    const std::vector<std::string> boundaries{"rail",    "board", "host", "node-dc",
                                              "node-ac", "node",  "rack", "facility"};
    constexpr std::array kBoundaries{Boundary::rail, Boundary::board,   Boundary::host,
                                     Boundary::node, Boundary::node,    Boundary::node,
                                     Boundary::rack, Boundary::facility};
    JD_ASSIGN(const std::size_t boundary, table.choice("boundary", boundaries));
    const bool said = table.find("boundary") != nullptr;
    one.boundary = kBoundaries[boundary];
    const bool before_supply = said && boundaries[boundary] == "node-dc";
    JD_ASSIGN(const auto meter, table.text("meter"));
    one.meter = meter.value_or("");
    JD_TRY(read_replica(table, one.name, one));
    const Kind joules{"J", kPositive, kHuge};
    const Kind rate{"/s", kPositive, kHuge};
    JD_ASSIGN(one.joules_per_unit, inputs_.input(table, "joules_per_unit", one.name, joules));
    JD_ASSIGN(one.throughput, inputs_.input(table, "throughput", one.name, rate));
    JD_ASSIGN(one.replicas, table.whole("replicas", 1, 10000000));
    JD_ASSIGN(const std::size_t scaling, table.choice("scaling", {"fixed", "hourly"}));
    one.scaling = static_cast<Scaling>(scaling);
    if (!one.from.empty()) JD_TRY(take_run(table, one, said));
    if (one.from.empty() && !said)
      return table.wrong("boundary is missing: what the energies are of, as in \"board\"");
    JD_TRY(check_device(table, one));
    JD_TRY(check_node(table, one, before_supply));
    JD_TRY(check_scaling(table, one));
    JD_TRY(table.finish());
    return one;
  }

  // What alternatives may share, in [replica]: there, or of one alternative alone.
  Status read_replica(const TableReader& table, const std::string& prefix, Alternative& one) {
    const auto read = [&](InputId& id, std::string_view key, const Kind& kind) -> Status {
      JD_ASSIGN(const InputId said, inputs_.input(table, key, prefix, kind));
      if (said.valid()) id = said;
      return {};
    };
    JD_TRY(read(one.work_per_unit, "work_per_unit", {"", kPositive, kHuge}));
    JD_TRY(read(one.idle_watts, "idle_watts", {"W", 0, kHuge}));
    JD_TRY(read(one.peak_watts, "peak_watts", {"W", kPositive, kHuge}));
    JD_TRY(read(one.rest_watts, "rest_watts", {"W", 0, kHuge}));
    JD_TRY(read(one.supply, "supply_efficiency", {"", 0.3, 1}));
    JD_TRY(read(one.parked_watts, "parked_watts", {"W", 0, kHuge}));
    JD_TRY(read(one.slo_share, "slo_share", {"", 0, 1}));
    JD_TRY(read(one.cost_per_year, "cost_per_year", {plan_.currency, 0, kHuge}));
    if (one.cost_per_year.valid() && plan_.currency.empty())
      return table.wrong("cost_per_year needs a [tariff], which says the currency");
    JD_ASSIGN(const auto concurrency, table.whole("concurrency", 1, 1000000));
    if (concurrency) one.concurrency = concurrency;
    JD_ASSIGN(const auto embodied, table.table("embodied"));
    if (embodied) JD_TRY(read_embodied(*embodied, prefix + ".embodied", one));
    return {};
  }

  static Status check_device(const TableReader& table, const Alternative& one) {
    const auto need = [&](InputId id, const char* key, const char* what) -> Status {
      if (id.valid()) return {};
      return table.wrong(fmt::format("{} is missing: {}", key, what));
    };
    JD_TRY(need(one.joules_per_unit, "joules_per_unit",
                "what a unit of work takes at load, or from = \"A.jd\""));
    JD_TRY(need(one.throughput, "throughput", "units a second of a replica at load"));
    return need(one.idle_watts, "idle_watts", "what a replica draws while it waits for work");
  }

  // What lies between the meter and the wall: of a node-dc its supply alone.
  static Status check_node(const TableReader& table, Alternative& one, bool node_dc) {
    const auto holds = [&](const char* key, InputId& id) -> Status {
      if (const Node* node = table.find(key); node != nullptr)
        return table.wrong(*node, fmt::format("energies of the {} have it in them; leave it out",
                                              name(one.boundary)));
      id = InputId();
      return {};
    };
    if (one.boundary >= Boundary::node) JD_TRY(holds("rest_watts", one.rest_watts));
    if (one.boundary >= Boundary::node && !node_dc) return holds("supply_efficiency", one.supply);
    if (!node_dc && !one.rest_watts.valid())
      return table.wrong(fmt::format(
          "rest_watts is missing: what a replica's node draws beside its {} (a range, as "
          "it is rarely known well)",
          name(one.boundary)));
    if (!one.supply.valid())
      return table.wrong(
          fmt::format("supply_efficiency is missing: of the power supply between the wall and the "
                      "{}; 1 if the watts are of the wall",
                      node_dc ? "node's meter" : name(one.boundary)));
    return {};
  }

  Status check_scaling(const TableReader& table, Alternative& one) const {
    if (plan_.slo.wait && !one.concurrency)
      return table.wrong(
          "concurrency is missing: how many units a replica works on at once, which slo.wait "
          "needs");
    if (one.scaling == Scaling::fixed) {
      if (const Node* node = table.find("parked_watts"); node != nullptr)
        return table.wrong(*node, "it goes with scaling = \"hourly\"");
      one.parked_watts = InputId();
      return {};
    }
    if (!one.parked_watts.valid())
      return table.wrong(
          "parked_watts is missing: what a replica that is not needed draws at the wall, which "
          "scaling = \"hourly\" needs");
    if (one.replicas)
      return table.wrong(*table.find("scaling"),
                         "hourly scaling goes by the demand of each hour; leave replicas out");
    return {};
  }

  Status read_embodied(const TableReader& table, const std::string& prefix, Alternative& one) {
    JD_ASSIGN(one.embodied, inputs_.needed(table, "kg", prefix, {"kg", 0, 1e12},
                                           "kg of CO2e that making a replica's hardware took"));
    JD_ASSIGN(one.lifetime, inputs_.needed(table, "lifetime_years", prefix, {"years", 0.1, 100},
                                           "over how many years that is spread"));
    JD_ASSIGN(const auto share, table.number("share", kPositive, 1));
    if (!share)
      return table.wrong("share is missing: of the hardware that a replica takes up, 1 for all");
    one.embodied_share = *share;
    JD_ASSIGN(const auto source, table.text("source"));
    one.embodied_source = source.value_or("");
    return table.finish();
  }

  // What the recorded run says, where the plan itself does not.
  Status take_run(const TableReader& table, Alternative& one, bool boundary_said) {
    Result<Measured> run = from_.measure(one.from);
    if (!run) return fail(std::move(run).error().within(table.origin(*table.find("from"))));
    if (boundary_said && run->boundary != one.boundary)
      return table.wrong(
          *table.find("boundary"),
          fmt::format("{} was measured at the {}", printable(one.from), name(run->boundary)));
    one.boundary = run->boundary;
    one.meter = run->meter;
    one.systematic = run->systematic;
    one.run_unit = run->work_unit;
    if (run->work_unit != plan_.service.unit && !one.work_per_unit.valid())
      return table.wrong(
          *table.find("from"),
          fmt::format("it counts {}s and the plan {}s; say by work_per_unit how many "
                      "make one",
                      printable(run->work_unit), printable(plan_.service.unit)));
    const auto take = [&](InputId& id, const char* key, const char* unit, const Range& range,
                          bool ranged, double least) {
      if (id.valid()) return;
      id = inputs_.add(
          {one.name + "." + key, unit, range, ranged, run->standing, one.from, least, kHuge});
    };
    take(one.joules_per_unit, "joules_per_unit", "J", run->joules_per_unit, run->energy_ranged,
         kPositive);
    take(one.throughput, "throughput", "/s", run->throughput, run->throughput_ranged, kPositive);
    if (run->idle_known) take(one.idle_watts, "idle_watts", "W", run->idle_watts, true, 0);
    return {};
  }

  std::string file_;
  const Surroundings& from_;
  Plan plan_;
  InputReader inputs_;
  Alternative common_;  // what [replica] says
};

}  // namespace

std::vector<double> Plan::base_values() const {
  std::vector<double> values;
  for (const Input& input : inputs) values.push_back(input.range.base);
  return values;
}

std::string_view name(Plan::Aim aim) {
  switch (aim) {
    case Plan::Aim::energy: return "energy";
    case Plan::Aim::cost: return "cost";
    case Plan::Aim::carbon: return "carbon";
  }
  return "?";
}

Result<Plan> read_plan(std::string_view bytes, const std::string& file, const Surroundings& from) {
  return PlanReader(file, from).read(bytes);
}

}  // namespace joulediff::facility
