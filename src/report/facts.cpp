#include "report/facts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "diagnose/costs.h"
#include "diagnose/evidence.h"
#include "diagnose/place.h"

namespace joulediff::report {
namespace {

std::string where_key(const std::optional<diagnose::Place>& where) {
  return where ? where->file + ":" + std::to_string(where->line) : std::string();
}

std::string names(const run::Run& run, const diagnose::RegionSide& side) {
  std::string key;
  for (const run::OperatorId id : side.operators)
    if (!run.operators[id.index()].view) key += run.operators[id.index()].name + " ";
  return key;
}

}  // namespace

std::vector<OperatorRow> operator_rows(const Subject& subject) {
  if (subject.cost == nullptr) return {};
  const run::Run& run = *subject.run;
  std::map<std::string, std::vector<run::OperatorId>> calls;
  for (std::size_t i = 0; i < run.operators.size(); ++i)
    if (!run.operators[i].view)
      calls[diagnose::base_name(run.operators[i].name)].push_back(run::OperatorId(i));
  std::vector<OperatorRow> rows;
  for (const auto& [operator_name, ids] : calls) {
    const diagnose::Measured measured = diagnose::cost(run, *subject.cost, ids);
    const auto dearest =
        std::max_element(ids.begin(), ids.end(), [&](run::OperatorId x, run::OperatorId y) {
          return subject.cost->operators[x.index()].total.joules <
                 subject.cost->operators[y.index()].total.joules;
        });
    OperatorRow row{operator_name,
                    ids.size(),
                    non_negative(measured.energy()),
                    diagnose::time(*subject.cost, ids),
                    measured.mean / subject.cost->ledger.total.joules.value,
                    measured.known,
                    diagnose::places(run, *dearest).where,
                    diagnose::reference(run, *subject.cost, ids),
                    diagnose::least_energy(run, *subject.cost, ids)};
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const OperatorRow& x, const OperatorRow& y) {
    return x.energy.joules != y.energy.joules ? x.energy.joules > y.energy.joules : x.name < y.name;
  });
  return rows;
}

std::vector<RegionRow> region_rows(const Page& page) {
  std::map<std::tuple<std::string, std::string, std::string, diagnose::Outcome, bool, bool>,
           std::size_t>
      places;
  std::vector<RegionRow> rows;
  const auto& regions = page.comparison->regions;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const diagnose::RegionResult& region = regions[i];
    const auto [found, is_new] = places.try_emplace(
        {where_key(region.a.where) + " " + where_key(region.b.where), names(*page.a.run, region.a),
         names(*page.b->run, region.b), region.outcome, region.outputs_agree, region.inputs_differ},
        rows.size());
    if (is_new) rows.emplace_back();
    RegionRow& row = rows[found->second];
    row.regions.push_back(i);
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    row.joules_a += region.a.known ? region.a.energy.joules.value : kUnknown;
    row.joules_b += region.b.known ? region.b.energy.joules.value : kUnknown;
  }
  std::sort(rows.begin(), rows.end(), [](const RegionRow& x, const RegionRow& y) {
    const auto difference = [](const RegionRow& row) {  // what is not known comes last
      const double joules = std::abs(row.joules_b - row.joules_a);
      return std::isnan(joules) ? -1 : joules;
    };
    const double of_x = difference(x);
    const double of_y = difference(y);
    return of_x != of_y ? of_x > of_y : x.regions < y.regions;
  });
  return rows;
}

std::vector<std::pair<std::string, const attribute::Ledger*>> named_ledgers(
    const Subject& subject) {
  std::vector<std::pair<std::string, const attribute::Ledger*>> all;
  if (subject.cost == nullptr) return all;
  all.emplace_back(joulediff::name(subject.cost->ledger.boundary), &subject.cost->ledger);
  for (const attribute::Ledger& ledger : subject.cost->beside) {
    const auto alike =
        std::ranges::count(subject.cost->beside, ledger.boundary, &attribute::Ledger::boundary) +
        (ledger.boundary == subject.cost->ledger.boundary ? 1 : 0);
    std::string name(joulediff::name(ledger.boundary));
    if (alike > 1 && !ledger.meter.channels.empty()) name += " " + ledger.meter.channels.front();
    all.emplace_back(std::move(name), &ledger);
  }
  return all;
}

std::string region_id(const diagnose::RegionResult& region) {
  return fmt::format("r{}", region.region);
}

Diagnostics diagnostics(const Subject& subject) {
  Diagnostics all = subject.run->diagnostics;
  if (subject.cost != nullptr)
    all.insert(all.end(), subject.cost->diagnostics.begin(), subject.cost->diagnostics.end());
  Diagnostics merged;
  for (const Diagnostic& one : all) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Diagnostic& other) {
      return other.rule == one.rule && told(other) == told(one) && other.severity == one.severity;
    });
    if (same == merged.end()) {
      merged.push_back(one);
    } else {
      same->count += one.count;
    }
  }
  std::sort(merged.begin(), merged.end(), [](const Diagnostic& x, const Diagnostic& y) {
    return x.severity != y.severity ? x.severity > y.severity
                                    : std::tie(x.rule, x.message) < std::tie(y.rule, y.message);
  });
  return merged;
}

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "?";
}

}  // namespace joulediff::report
