#include "report/boundaries.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "report/facts.h"
#include "report/interval.h"
#include "report/prose.h"

namespace joulediff::report {
namespace {

using Json = nlohmann::ordered_json;
using rules::BoundaryRow;
using rules::Seen;
using run::Point;

std::string unit_of(const BoundariesPage& page) {
  for (const auto* side : {&page.a, &page.b})
    for (const Point& p : *side)
      if (!p.work.unit.empty()) return p.work.unit;
  return "";
}

std::string unit_word(const BoundariesPage& page) {
  const std::string unit = unit_of(page);
  return unit.empty() ? "unit of unknown work" : unit;
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : ", ") + one;
  return text;
}

// The labels of a side, each once.
std::string labels(const std::vector<Point>& side) {
  std::vector<std::string> list;
  for (const Point& p : side)
    if (std::ranges::find(list, p.label) == list.end()) list.push_back(p.label);
  return joined(list);
}

std::string seen_text(const Point& p) {
  std::string text = p.meter.name.empty() ? "an unknown meter" : p.meter.name;
  if (!p.meter.serial.empty() && p.meter.serial != p.meter.name)
    text += fmt::format(" ({})", p.meter.serial);
  text += ", " + rules::standing_of(p);
  return text + (p.boundary.includes.empty() ? "; what lies inside is not said"
                                             : "; inside: " + joined(p.boundary.includes));
}

std::string added(const std::optional<Seen>& seen) {
  if (!seen || !seen->added) return "";
  return fmt::format("{} beyond the {}", with_unit(seen->added, "J"), seen->over);
}

// In a unit of its own only where a rule was to refuse it.
std::string energy(const BoundariesPage& page, const std::optional<Seen>& seen,
                   const std::vector<Point>& side) {
  if (!seen) return "not measured";
  const std::string& unit = side[seen->point].work.unit;
  return with_unit(seen->per_unit, "J") +
         (seen->per_unit && unit != unit_of(page) && !unit.empty() ? " a " + unit : "");
}

std::string table(const BoundariesPage& page) {
  const bool two = !page.b.empty(), compared = two && !page.table.refused;
  const std::string unit = "J/" + unit_word(page);
  std::vector<TextColumn> columns{{"boundary", Align::left, 10, Cut::end},
                                  {(two ? "A, " : "") + unit, Align::left, 16, Cut::end}};
  if (two) columns.push_back({"B, " + unit, Align::left, 16, Cut::end});
  if (compared) {
    columns.push_back({"saved by B", Align::left, 20, Cut::end});
    columns.push_back({"kept of the saving", Align::left, 20, Cut::end});
  }
  TextTable result(std::move(columns), kWidth);
  for (const BoundaryRow& row : page.table.rows) {
    std::vector<std::string> cells{row.boundary, energy(page, row.a, page.a)};
    if (two) cells.push_back(energy(page, row.b, page.b));
    if (compared) {
      cells.push_back(share(row.share));
      const bool outside = rules::lies_inside(page.table.reference, row.boundary);
      cells.push_back(row.boundary == page.table.reference ? "all: the reference"
                      : outside                            ? share(row.kept)
                                                           : "-");
    }
    result.add(std::move(cells));
  }
  return result.text("  ");
}

// What each boundary is: of both sides at once where they were measured alike.
std::string held(const BoundariesPage& page) {
  std::string out;
  for (const BoundaryRow& row : page.table.rows) {
    std::vector<std::string> lines;
    if (row.a) lines.push_back(seen_text(page.a[row.a->point]));
    if (row.b) lines.push_back(seen_text(page.b[row.b->point]));
    if (lines.size() == 2 && lines[0] == lines[1]) {
      lines.pop_back();
    } else if (!page.b.empty()) {
      lines.front() = (row.a ? "A: " : "B: ") + lines.front();
      if (lines.size() == 2) lines.back() = "B: " + lines.back();
    }
    const std::string a = added(row.a), b = added(row.b);
    if (page.b.empty() || b.empty())
      lines.push_back(a);
    else
      lines.push_back((a.empty() ? "" : "A: " + a + "; ") + "B: " + b);
    std::string label = row.boundary;
    for (const std::string& line : lines) {
      if (line.empty()) continue;
      out += entry(label, line, 10);
      label.clear();
    }
  }
  return out;
}

std::string conclusion(const BoundariesPage& page) {
  const rules::Boundaries& t = page.table;
  if (t.refused) return entry("", "Not comparable: no ratio is printed.", 0);
  if (page.b.empty()) return "";
  if (t.reference.empty())
    return entry("", "The energy of a unit is not known on both sides of a boundary.", 0);
  std::string out;
  for (const BoundaryRow& row : t.rows) {
    if (row.boundary != t.reference) continue;
    if (!row.share->bounded())
      out += entry("",
                   fmt::format("How far the energies at the {} may be off is not known: state "
                               "meter.uncertainty, or meter.serial and meter.range.",
                               row.boundary),
                   0);
    else if (row.share->low <= 0 && row.share->high >= 0)
      out += entry(
          "", fmt::format("Whether anything is saved at the {} is undecided.", row.boundary), 0);
  }
  for (const BoundaryRow& row : t.rows)
    if (row.saved &&
        (rules::scaled_by_pue(page.a[row.a->point]) || rules::scaled_by_pue(page.b[row.b->point])))
      out += entry("",
                   fmt::format("The saving at the {} follows from a PUE, and is no measurement of "
                               "its own.",
                               row.boundary),
                   0);
  return out;
}

std::string objections(const BoundariesPage& page) {
  std::string out;
  for (const rules::BoundaryObjection& one : page.table.objections) {
    const bool aside = one.what.severity == Severity::warning &&
                       std::ranges::find(page.despite, one.what.rule) != page.despite.end();
    const std::string whom = one.what.whom == rules::Whom::both || page.b.empty() ? ""
                             : one.what.whom == rules::Whom::a                    ? "A, "
                                                                                  : "B, ";
    out += entry(fmt::format("{:<4} {:<7}", one.what.rule, report::name(one.what.severity)),
                 fmt::format("{}{}: {}; {}{}", whom, one.at, one.what.message, one.what.remedy,
                             aside ? " (taken despite it)" : ""),
                 13);
  }
  return out;
}

Json seen_json(const std::optional<Seen>& seen, const std::vector<Point>& side) {
  if (!seen) return nullptr;
  const Point& p = side[seen->point];
  return {{"label", text_or_null(p.label)},
          {"joules_per_unit", to_json(seen->per_unit)},
          {"joules", number_or_null(p.energy.joules)},
          {"work", number_or_null(p.work.count)},
          {"standing", text_or_null(rules::scaled_by_pue(p) ? "modelled" : p.energy.standing)},
          {"standing_text", rules::standing_of(p)},
          {"estimated",
           {{"what", text_or_null(p.boundary.estimated)},
            {"share", number_or_null(p.boundary.estimated_share)}}},
          {"pue", rules::scaled_by_pue(p) ? number_or_null(p.facility.pue) : Json(nullptr)},
          {"meter", text_or_null(p.meter.name)},
          {"serial", text_or_null(p.meter.serial)},
          {"uncertainty", number_or_null(p.meter.uncertainty)},
          {"includes", p.boundary.includes.empty() ? Json(nullptr) : Json(p.boundary.includes)},
          {"beyond", {{"boundary", text_or_null(seen->over)}, {"joules", to_json(seen->added)}}}};
}

}  // namespace

std::string text(const BoundariesPage& page) {
  std::string out =
      page.b.empty() ? "" : entry("A", labels(page.a), 3) + entry("B", labels(page.b), 3);
  if (!out.empty()) out += "\n";
  out += table(page) + "\n" + held(page);
  if (const std::string said = conclusion(page); !said.empty()) out += "\n" + said;
  const std::size_t count = page.table.objections.size();
  out += count == 0   ? "\nNo rule objects.\n"
         : count == 1 ? "\n1 objection\n"
                      : fmt::format("\n{} objections\n", count);
  return out + objections(page);
}

std::string json(const BoundariesPage& page) {
  Json all{{"schema", "joulediff.boundaries/1"},  {"ok", !page.table.refused},
           {"unit", text_or_null(unit_of(page))}, {"reference", text_or_null(page.table.reference)},
           {"boundaries", Json::array()},         {"despite", page.despite},
           {"objections", Json::array()}};
  for (const BoundaryRow& row : page.table.rows)
    all["boundaries"].push_back({{"boundary", row.boundary},
                                 {"a", seen_json(row.a, page.a)},
                                 {"b", seen_json(row.b, page.b)},
                                 {"saved", to_json(row.saved)},
                                 {"share", to_json(row.share)},
                                 {"kept", to_json(row.kept)}});
  for (const rules::BoundaryObjection& one : page.table.objections)
    all["objections"].push_back({{"rule", one.what.rule},
                                 {"severity", report::name(one.what.severity)},
                                 {"of", one.what.whom == rules::Whom::both ? "both"
                                        : one.what.whom == rules::Whom::a  ? "a"
                                                                           : "b"},
                                 {"at", one.at},
                                 {"message", one.what.message},
                                 {"remedy", one.what.remedy}});
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace joulediff::report
