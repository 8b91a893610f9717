// The JSON of a report. Keys stay as docs/schemas has them: people's scripts read them. What is not
// known is null, never 0.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "report/facts.h"

namespace joulediff::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json to_json(const Energy& energy) {
  return {{"joules", energy.joules.value}, {"low", energy.low.value}, {"high", energy.high.value}};
}

Json to_json(const diagnose::Difference& d) {
  return {{"value", d.value}, {"low", d.low}, {"high", d.high}};
}

Json to_json(const std::optional<diagnose::Place>& place) {
  if (!place) return nullptr;
  return {{"file", place->file}, {"line", place->line}, {"function", to_json(place->function)}};
}

Json to_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json subject(const Subject& one) {
  const run::Manifest& manifest = one.run->manifest;
  return {{"label", to_json(manifest.label)},
          {"device", to_json(manifest.device)},
          {"framework", to_json(manifest.framework)},
          {"work", {{"unit", manifest.work.unit}, {"count", manifest.work.per_step}}},
          {"blocks", one.run->blocks.size()}};
}

// Of what is not known, too, a key for each number.
Json unknown_energy() {
  return {{"joules", nullptr}, {"low", nullptr}, {"high", nullptr}};
}

Json total(const attribute::Ledger& ledger) {
  Json result = to_json(ledger.total);
  result["standing"] = name(ledger.total.standing);
  result["boundary"] = name(ledger.boundary);
  result["meter"] = ledger.meter.name;
  result["systematic"] = to_json(ledger.meter.systematic);
  result["seconds"] = ledger.step_time.value;
  return result;
}

// Seconds; null: the meter reads on our clock.
Json delay(const meter::Meter& meter) {
  if (!meter.alignment) return nullptr;
  const meter::Estimate& delay = meter.alignment->delay;
  return {{"seconds", to_seconds(delay.value).value},
          {"low", to_seconds(delay.low).value},
          {"high", to_seconds(delay.high).value}};
}

Json energy(const Subject& one) {
  if (one.cost == nullptr) return nullptr;
  Json result = total(one.cost->ledger);
  result["recognised"] = one.cost->recognised;
  result["beside"] = Json::array();
  for (const auto& [ledger_name, ledger] : named_ledgers(one)) {
    if (ledger == &one.cost->ledger) continue;
    Json beside = total(*ledger);
    beside["ledger"] = ledger_name;
    beside["delay"] = delay(ledger->meter);
    result["beside"].push_back(std::move(beside));
  }
  return result;
}

Json per_work_unit(const Subject& one) {
  if (one.cost == nullptr) return nullptr;
  Json result = to_json(one.cost->per_work_unit);
  result["unit"] = one.run->manifest.work.unit;
  return result;
}

Json lines(const attribute::Ledger& ledger) {
  Json lines = Json::array();
  for (std::size_t i = 0; i < attribute::kLines; ++i) {
    const std::optional<Energy>& energy = ledger.lines[i];
    Json line{{"line", attribute::name(static_cast<attribute::Line>(i))}};
    line.update(energy ? to_json(*energy) : unknown_energy());
    line["standing"] = energy ? Json(name(energy->standing)) : Json(nullptr);
    lines.push_back(std::move(line));
  }
  return lines;
}

Json ledger(const Subject& one) {
  if (one.cost == nullptr) return nullptr;
  Json result;
  for (const auto& [ledger_name, ledger] : named_ledgers(one)) result[ledger_name] = lines(*ledger);
  return result;
}

Json to_json(const Diagnostics& diagnostics, const char* side) {
  Json list = Json::array();
  for (const Diagnostic& one : diagnostics) {
    Json item;
    if (side != nullptr) item["side"] = side;
    item["rule"] = one.rule;
    item["severity"] = name(one.severity);
    item["message"] = one.message;
    item["remedy"] = to_json(one.remedy);
    item["count"] = one.count;
    list.push_back(std::move(item));
  }
  return list;
}

Json region_side(const run::Run& run, const diagnose::RegionSide& side) {
  Json operators = Json::array();
  for (const run::OperatorId id : side.operators)
    operators.push_back(run.operators[id.index()].name);
  Json result{{"operators", std::move(operators)}};
  if (side.known) {
    result.update(to_json(side.energy));
    result["standing"] = name(side.energy.standing);
  } else {
    result.update(unknown_energy());
  }
  result["seconds"] = side.seconds.value;
  result["where"] = to_json(side.where);
  return result;
}

Json region(const Page& page, const diagnose::RegionResult& one) {
  return {{"id", region_id(one)},
          {"a", region_side(*page.a.run, one.a)},
          {"b", region_side(*page.b->run, one.b)},
          {"difference", one.a.known && one.b.known
                             ? to_json(one.difference)
                             : Json{{"value", nullptr}, {"low", nullptr}, {"high", nullptr}}},
          {"noise_floor", to_json(one.noise_floor)},
          {"outputs_agree", one.outputs_agree},
          {"inputs_differ", one.inputs_differ},
          {"matched_by", one.matched_by == match::MatchedBy::value ? "value" : "name"},
          {"verdict", diagnose::name(one.outcome)}};
}

Json finding(const Page& page, const diagnose::Finding& one) {
  Json regions = Json::array();
  for (const std::size_t i : one.regions) regions.push_back(region_id(page.comparison->regions[i]));
  Json saving = to_json(one.saving);
  saving["share_of_run"] = one.share_of_run;
  return {{"rank", one.rank},
          {"side", one.side == diagnose::Side::a ? "a" : "b"},
          {"region", regions.empty() ? Json(nullptr) : regions.front()},
          {"regions", regions},
          {"verdict", diagnose::name(one.outcome)},
          {"saving", std::move(saving)},
          {"difference", to_json(one.difference)},
          {"cause",
           {{"kind", diagnose::name(one.cause.kind)},
            {"key", one.cause.key},
            {"message", one.cause.message},
            {"where", to_json(one.cause.where)},
            {"called_from", to_json(one.cause.called_from)},
            {"standing", diagnose::name(one.cause.standing)}}},
          {"advice", one.advice},
          {"known_issue", to_json(one.known_issue)}};
}

Json unmatched(const run::Run& run, const diagnose::Unmatched& one) {
  Json operators = Json::array();
  for (const run::OperatorId id : one.operators)
    operators.push_back(run.operators[id.index()].name);
  Json result{{"operators", std::move(operators)}};
  result.update(one.known ? to_json(one.energy) : unknown_energy());
  return result;
}

// What was measured of the machine with another program, and is in the noise floors.
Json machine_floor(const Page& page) {
  const diagnose::Comparison& c = *page.comparison;
  if (!c.machine) return nullptr;
  const std::size_t a = page.a.cost->blocks.size(), b = page.b->cost->blocks.size();
  return {{"whole", c.machine->whole_floor(a, b)},
          {"operators", to_json(c.machine->operator_floor(a, b))},
          {"processes", c.machine->processes},
          {"program", c.machine->program},
          {"driver", c.machine->driver},
          {"date", c.machine->date}};
}

Json comparison(const Page& page) {
  const diagnose::Comparison& c = *page.comparison;
  Json reasons = to_json(c.comparable.reasons, nullptr);
  for (Json& reason : reasons) reason.erase("count");
  Json result{{"schema", "joulediff.compare/1"},
              {"a", subject(page.a)},
              {"b", subject(*page.b)},
              {"comparable",
               {{"ok", c.comparable.ok},
                {"recorded_apart", c.comparable.recorded_apart},
                {"reasons", std::move(reasons)}}},
              {"energy",
               {{"a", energy(page.a)},
                {"b", energy(*page.b)},
                {"per_work_unit", {{"a", per_work_unit(page.a)}, {"b", per_work_unit(*page.b)}}}}},
              {"ledger", {{"a", ledger(page.a)}, {"b", ledger(*page.b)}}}};
  const bool compared = c.comparable.ok && page.a.cost != nullptr && page.b->cost != nullptr;
  result["energy"]["difference"] = compared ? to_json(c.whole) : Json(nullptr);
  result["energy"]["noise_floor"] = compared ? to_json(c.noise_floor) : Json(nullptr);
  result["energy"]["machine_floor"] = compared ? machine_floor(page) : Json(nullptr);
  if (page.gate && compared) {
    Json gate{{"limit", *page.gate}};
    gate.update(to_json(c.gate));
    gate["result"] = diagnose::name(diagnose::gate(c, *page.gate));
    result["gate"] = std::move(gate);
  }
  result["regions"] = Json::array();
  for (const auto& one : c.regions) result["regions"].push_back(region(page, one));
  result["unmatched"] = {{"a", unmatched(*page.a.run, c.unmatched_a)},
                         {"b", unmatched(*page.b->run, c.unmatched_b)}};
  if (!compared) result["unmatched"] = nullptr;
  result["findings"] = Json::array();
  for (const auto& one : c.findings) result["findings"].push_back(finding(page, one));
  result["diagnostics"] = to_json(diagnostics(page.a), "a");
  for (Json& one : to_json(diagnostics(*page.b), "b"))
    result["diagnostics"].push_back(std::move(one));
  return result;
}

Json least_energy(const std::optional<diagnose::LeastEnergy>& least) {
  if (!least) return nullptr;
  return {{"joules", least->joules.joules.value},
          {"low", least->joules.low.value},
          {"high", least->joules.high.value},
          {"distance",
           {{"value", least->distance},
            {"low", least->low},
            {"high", std::isfinite(least->high) ? Json(least->high) : Json(nullptr)}}}};
}

Json show(const Page& page) {
  Json operators = Json::array();
  for (const OperatorRow& row : operator_rows(page.a)) {
    if (operators.size() == page.top) break;
    Json one{{"name", row.name}, {"calls", row.calls}};
    one.update(row.known ? to_json(row.energy) : unknown_energy());
    one["standing"] = name(row.energy.standing);
    one["seconds"] = row.seconds.value;
    one["share_of_run"] = row.share;
    one["where"] = to_json(row.where);
    if (row.reference)
      one["reference"] = {{"seconds", row.reference->seconds.value},
                          {"distance", row.reference->distance},
                          {"bound", name(row.reference->bound)}};
    else
      one["reference"] = nullptr;
    one["least_energy"] = least_energy(row.least_energy);
    operators.push_back(std::move(one));
  }
  return {{"schema", "joulediff.show/1"},
          {"run", subject(page.a)},
          {"energy", energy(page.a)},
          {"per_work_unit", per_work_unit(page.a)},
          {"ledger", ledger(page.a)},
          {"operators", std::move(operators)},
          {"diagnostics", to_json(diagnostics(page.a), nullptr)}};
}

}  // namespace

std::string json(const Page& page) {
  const Json result = page.b ? comparison(page) : show(page);
  return result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace joulediff::report
