// Schema joulediff.mlperf/1 (docs/schemas): what is not known is null.
#include <cmath>

#include <nlohmann/json.hpp>

#include "report/facts.h"
#include "report/frontier_json.h"
#include "report/mlperf.h"
#include "report/mlperf_population.h"

namespace joulediff::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json to_json(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json to_json(const std::optional<double>& value) {
  return value ? to_json(*value) : Json(nullptr);
}
template <class Quantity>
  requires requires(Quantity q) { q.value; }
Json to_json(const std::optional<Quantity>& value) {
  return value ? to_json(value->value) : Json(nullptr);
}

Json checked(rules::Checked value) {
  switch (value) {
    case rules::Checked::passed: return "pass";
    case rules::Checked::warned: return "warn";
    case rules::Checked::failed: return "fail";
    case rules::Checked::unchecked: return nullptr;
  }
  return nullptr;
}

Json score(const MlperfEntry& entry) {
  const rules::Score& s = entry.judgement.score;
  Json parts = Json::array(), windows = Json::array();
  for (const rules::Part& part : s.parts)
    parts.push_back({{"what", part.what}, {"joules", to_json(part.joules.value)}});
  for (const rules::MlperfWindow& window : s.windows)
    windows.push_back({{"name", window.name},
                       {"seconds", to_json(window.seconds.value)},
                       {"units", to_json(window.units)},
                       {"official_joules", to_json(window.official)},
                       {"trapezoid_joules", to_json(window.trapezoid)}});
  return {{"metric", s.metric},
          {"official", to_json(s.official)},
          {"trapezoid", to_json(s.ours)},
          {"published", to_json(s.published)},
          {"official_joules", to_json(s.official_joules)},
          {"trapezoid_joules", to_json(s.trapezoid)},
          {"bridged_joules", to_json(s.bridged)},
          {"official_watts", to_json(s.official_watts)},
          {"ranging_watts", to_json(s.ranging_watts)},
          {"seconds", to_json(s.window)},
          {"unit", s.unit},
          {"units", to_json(s.units)},
          {"rate", to_json(s.rate)},
          {"joules_per_unit", to_json(s.joules_per_unit())},
          {"standing", name(s.standing)},
          {"boundary", to_json(entry.judgement.point.boundary.kind)},
          {"meter", to_json(entry.judgement.point.meter.name)},
          {"parts", std::move(parts)},
          {"windows", std::move(windows)}};
}

Json sampling(const run::Point& p) {
  return {{"readings", to_json(p.sampling.readings)},
          {"nonpositive", to_json(p.sampling.nonpositive)},
          {"not_numbers", to_json(p.sampling.not_numbers)},
          {"overflows", to_json(p.sampling.overflows)},
          {"duplicates", to_json(p.sampling.duplicates)},
          {"backward", to_json(p.sampling.backward)},
          {"missing_share", to_json(p.sampling.missing_share)},
          {"period", to_json(p.sampling.period)},
          {"largest_gap", to_json(p.sampling.largest_gap)},
          {"power_factor", to_json(p.meter.power_factor)},
          {"least_watts_before", to_json(p.idle.watts)},
          {"clock_skew", to_json(p.clock.skew)},
          {"uncertainty", to_json(p.meter.uncertainty)}};
}

Json submission(const MlperfEntry& entry) {
  const run::Submission& s = entry.submission;
  constexpr const char* kKinds[] = {"inference", "training", "tiny"};
  Json checks = Json::array(), objections = Json::array(), diagnostics = Json::array();
  for (const rules::MlperfCheck& check : entry.judgement.checks)
    checks.push_back({{"id", check.id},
                      {"official", checked(check.official)},
                      {"ours", checked(check.ours)},
                      {"message", to_json(check.message)},
                      {"files", check.files},
                      {"remedy", to_json(check.remedy)},
                      {"why", to_json(check.why)}});
  for (const rules::Objection& one : entry.judgement.objections)
    objections.push_back({{"rule", one.rule},
                          {"severity", name(one.severity)},
                          {"message", one.message},
                          {"remedy", one.remedy}});
  for (const Diagnostic& one : s.diagnostics)
    diagnostics.push_back({{"rule", one.rule},
                           {"severity", name(one.severity)},
                           {"message", one.message},
                           {"count", one.count}});
  return {{"path", s.path},
          {"kind", kKinds[static_cast<std::size_t>(s.kind)]},
          {"submitter", to_json(s.submitter)},
          {"system", to_json(s.system)},
          {"benchmark", to_json(s.benchmark)},
          {"scenario", to_json(s.scenario)},
          {"round", to_json(s.round)},
          {"official_verdict", checked(entry.judgement.official)},
          {"verdict", checked(entry.judgement.ours)},
          {"score", score(entry)},
          {"sampling", sampling(entry.judgement.point)},
          {"checks", std::move(checks)},
          {"objections", std::move(objections)},
          {"diagnostics", std::move(diagnostics)}};
}

Json population(const MlperfPage& page) {
  Json tasks = Json::array(), quality = Json::array(), changed = Json::array();
  for (const TaskRow& row : by_task(page))
    tasks.push_back({{"task", row.task},
                     {"unit", row.unit},
                     {"count", row.count},
                     {"least_joules", to_json(row.least)},
                     {"median_joules", to_json(row.median)},
                     {"most_joules", to_json(row.most)}});
  for (const QualityRow& row : cost_of_quality(page))
    quality.push_back({{"low", row.low->submission.path},
                       {"high", row.high->submission.path},
                       {"relative_efficiency", to_json(row.efficiency)},
                       {"same_log", row.same_log}});
  for (const ChangeRow& row : changes(page))
    changed.push_back({{"a", row.a->submission.path},
                       {"b", row.b->submission.path},
                       {"differs", row.what},
                       {"detail", to_json(row.detail)},
                       {"change", to_json(row.change)}});
  return {{"tasks", std::move(tasks)},
          {"curves", groups_json(curves(page))},
          {"cost_of_quality", std::move(quality)},
          {"changes", std::move(changed)}};
}

}  // namespace

std::string json(const MlperfPage& page) {
  Json all{{"schema", "joulediff.mlperf/1"}, {"submissions", Json::array()}};
  for (const MlperfEntry& entry : page.entries) all["submissions"].push_back(submission(entry));
  all["population"] = population(page);
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace joulediff::report
