#include <cmath>

#include <nlohmann/json.hpp>

#include "report/facility.h"
#include "report/facility_parts.h"
#include "report/facts.h"

namespace joulediff::report {

namespace {

using Json = nlohmann::ordered_json;
using facility::Plan;
using facility::Range;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json text(const std::string& value) {
  return value.empty() ? Json(nullptr) : Json(value);
}

Json range(const Range& value) {
  return {{"base", number(value.base)}, {"low", number(value.low)}, {"high", number(value.high)}};
}

Json figure(const Range& value, const std::string& unit, const std::optional<Boundary>& boundary,
            Standing standing) {
  Json out = range(value);
  out["unit"] = text(unit);
  out["boundary"] = boundary ? Json(joulediff::name(*boundary)) : Json(nullptr);
  out["standing"] = joulediff::name(standing);
  return out;
}

Json input(const facility::Input& one) {
  Json out{{"key", one.key}, {"base", one.range.base}};
  out["low"] = one.ranged ? Json(one.range.low) : Json(nullptr);
  out["high"] = one.ranged ? Json(one.range.high) : Json(nullptr);
  out["unit"] = text(one.unit);
  out["standing"] = joulediff::name(one.standing);
  out["from"] = text(one.origin);
  return out;
}

Json alternative(const facility::Study& study, std::size_t a) {
  const facility::Alternative& one = study.plan.alternatives[a];
  const facility::Subject& subject = study.subjects[a];
  Json out{{"name", one.name}, {"from", text(one.from)}};
  out["device"] =
      figure(subject.device, "J/" + study.plan.service.unit, one.boundary, subject.device_standing);
  out["device"]["meter"] = text(one.meter);
  out["device"]["systematic"] = one.systematic ? Json(*one.systematic) : Json(nullptr);
  Json& year = out["year"] = Json::object();
  const auto& all = facility::measures();
  for (std::size_t m = 0; m < all.size(); ++m)
    year[std::string(all[m].key)] =
        figure(subject.values[m], unit_of(all[m], study.plan), all[m].boundary, Standing::modelled);
  return out;
}

Json pair(const facility::Study& study, std::size_t i) {
  const facility::Pair& one = study.pairs[i];
  const Plan& plan = study.plan;
  Json out{{"best", plan.alternatives[one.best].name},
           {"other", plan.alternatives[one.other].name},
           {"difference", range(one.difference)}};
  out["tornado"] = Json::array();
  for (const facility::Swing& swing : one.tornado)
    out["tornado"].push_back({{"input", plan.inputs[swing.input.index()].key},
                              {"difference_at_low", number(swing.at_low)},
                              {"difference_at_high", number(swing.at_high)}});
  out["break_even"] = Json::array();
  for (const facility::BreakEven& turn : one.break_even) {
    const facility::Input& of = plan.inputs[turn.input.index()];
    out["break_even"].push_back({{"input", of.key},
                                 {"value", number(turn.value)},
                                 {"unit", text(of.unit)},
                                 {"within_range", turn.within_range}});
  }
  const facility::Rebound& rebound = study.rebound[i];
  out["rebound"] = {{"saving", number(rebound.saving)},
                    {"share", range(rebound.share)},
                    {"taken_back", range(rebound.taken_back)},
                    {"left", range(rebound.left)},
                    {"unit", aim_unit(plan)}};
  return out;
}

Json growth(const facility::Study& study) {
  Json out{{"years", study.plan.service.years}, {"factor", range(study.demand.factor)}};
  out["alternatives"] = Json::array();
  for (std::size_t a = 0; a < study.demand.energy.size(); ++a)
    out["alternatives"].push_back(
        {{"name", study.plan.alternatives[a].name},
         {"site_energy",
          figure(study.demand.energy[a], "J", Boundary::facility, Standing::modelled)},
         {"replicas", range(study.demand.replicas[a])},
         {"peak", figure(study.demand.peak[a], "W", Boundary::facility, Standing::modelled)}});
  return out;
}

}  // namespace

std::string facility_json(const facility::Study& study) {
  const Plan& plan = study.plan;
  Json out{{"schema", "joulediff.facility/1"},
           {"title", text(plan.title)},
           {"year", plan.year},
           {"zone", plan.zone.name()},
           {"hours", plan.hours.size()},
           {"unit", plan.service.unit},
           {"currency", text(plan.currency)},
           {"rank_by", facility::name(plan.aim)}};
  out["carbon"] = nullptr;
  if (plan.carbon.level.valid())
    out["carbon"] = {{"zone", plan.carbon_zone},
                     {"kind", plan.carbon_kind},
                     {"basis", plan.carbon_basis},
                     {"from", text(plan.carbon.provider)}};
  out["alternatives"] = Json::array();
  for (std::size_t a = 0; a < study.subjects.size(); ++a)
    out["alternatives"].push_back(alternative(study, a));
  out["comparable"] = study.same_work;
  out["ranking"] = Json::array();
  for (const std::size_t a : study.ranking) out["ranking"].push_back(plan.alternatives[a].name);
  out["pairs"] = Json::array();
  for (std::size_t i = 0; i < study.pairs.size(); ++i) out["pairs"].push_back(pair(study, i));
  out["growth"] = growth(study);
  out["inputs"] = Json::array();
  for (const facility::Input& one : plan.inputs) out["inputs"].push_back(input(one));
  out["diagnostics"] = Json::array();
  for (const Diagnostic& one : study.diagnostics)
    out["diagnostics"].push_back({{"rule", one.rule},
                                  {"severity", name(one.severity)},
                                  {"message", one.message},
                                  {"count", one.count}});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace joulediff::report
