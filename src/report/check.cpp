#include "report/check.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "report/facts.h"
#include "report/prose.h"

namespace joulediff::report {
namespace {

using Json = nlohmann::ordered_json;
using rules::Objection;
using run::Fact;
using run::Point;

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

std::string_view name(rules::Whom whom) {
  switch (whom) {
    case rules::Whom::a: return "a";
    case rules::Whom::b: return "b";
    case rules::Whom::both: return "both";
  }
  return "?";
}

// (b-a)/max(a,b) of joules a unit; none where a rule refuses it, or it is not known.
Fact difference(const CheckPage& page) {
  if (!page.b || rules::refuses(page.objections)) return {};
  const Fact a = page.a.per_unit(), b = page.b->per_unit();
  if (!a || !b || !(std::max(*a, *b) > 0)) return {};
  return (*b - *a) / std::max(*a, *b);
}

std::string header(const CheckPage& page) {
  std::vector<TextColumn> columns{{"", Align::left, 12, Cut::end},
                                  {page.b ? "A" : "", Align::left, 20, Cut::end}};
  if (page.b) columns.push_back({"B", Align::left, 20, Cut::end});
  TextTable table(std::move(columns), kWidth);
  const auto add = [&](const std::string& what,
                       const std::function<std::string(const Point&)>& of) {
    std::vector<std::string> cells{what, of(page.a)};
    if (page.b) cells.push_back(of(*page.b));
    table.add(std::move(cells));
  };
  add("label", [](const Point& p) { return or_unknown(p.label); });
  add("device", [](const Point& p) { return or_unknown(p.hardware.device); });
  add("meter", [](const Point& p) {
    return fmt::format("{} ({})", or_unknown(p.meter.name), or_unknown(p.boundary.kind));
  });
  add("energy", [](const Point& p) {
    return p.energy.joules ? fmt::format("{}, {}", format(Joules(*p.energy.joules)),
                                         or_unknown(p.energy.standing))
                           : "unknown";
  });
  add("per unit", [](const Point& p) {
    const Fact joules = p.per_unit();
    return joules ? fmt::format("{} per {}", format(Joules(*joules)), or_unknown(p.work.unit))
                  : "unknown";
  });
  return table.text("  ");
}

Json to_json(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json to_json(const Fact& fact) {
  return fact && std::isfinite(*fact) ? Json(*fact) : Json(nullptr);
}

// Every fact that is known, by its place in a file of a point.
struct Teller {
  Json& all;
  template <class T>
  void operator()(const char* section, const char* key, const T& value) {
    Json one;
    if constexpr (std::is_same_v<T, std::string>) {
      if (value.empty()) return;
      one = value;
    } else if constexpr (std::is_same_v<T, run::Flag>) {
      if (!value) return;
      one = *value;
    } else if constexpr (std::is_same_v<T, Fact>) {
      if (!value || !std::isfinite(*value)) return;
      one = *value;
    } else {
      if (value.empty()) return;
      one = value;
    }
    (*section == '\0' ? all : all[section])[key] = std::move(one);
  }
};

Json point(const Point& p) {
  Json facts = Json::object();
  run::facts(Teller{facts}, p);
  return {{"label", to_json(p.label)},
          {"joules", to_json(p.energy.joules)},
          {"standing", to_json(p.energy.standing)},
          {"boundary", to_json(p.boundary.kind)},
          {"meter", to_json(p.meter.name)},
          {"unit", to_json(p.work.unit)},
          {"joules_per_unit", to_json(p.per_unit())},
          {"facts", std::move(facts)}};
}

}  // namespace

std::string text(const CheckPage& page) {
  std::string out = header(page);
  const bool refused = rules::refuses(page.objections);
  if (page.b) {
    const Fact change = difference(page);
    if (refused) {
      out += "\nNot comparable: no ratio is printed.\n";
    } else if (change) {
      out += fmt::format("\n  B against A: {} J per {}, by (B-A)/max(A,B).\n", with_sign(*change),
                         or_unknown(page.a.work.unit));
    } else {
      out += "\nThe energy of a unit is not known on both sides.\n";
    }
  }
  if (page.objections.empty())
    out += "\nNo rule objects.\n";
  else
    out += fmt::format("\n{} {}\n", page.objections.size(),
                       page.objections.size() == 1 ? "objection" : "objections");
  for (const Objection& one : page.objections) {
    const bool aside = one.severity == Severity::warning &&
                       std::ranges::find(page.despite, one.rule) != page.despite.end();
    const std::string whom = one.whom == rules::Whom::both || !page.b
                                 ? std::string()
                                 : fmt::format("{}: ", name(one.whom));
    out += entry(fmt::format("{:<4} {:<7}", one.rule, report::name(one.severity)),
                 fmt::format("{}{}; {}{}", whom, one.message, one.remedy,
                             aside ? " (compared despite it)" : ""),
                 13);
  }
  return out;
}

std::string json(const CheckPage& page) {
  Json all{{"schema", "joulediff.check/1"},
           {"a", point(page.a)},
           {"b", page.b ? point(*page.b) : Json(nullptr)},
           {"ok", !rules::refuses(page.objections)},
           {"difference", to_json(difference(page))},
           {"despite", page.despite},
           {"objections", Json::array()}};
  for (const Objection& one : page.objections)
    all["objections"].push_back({{"rule", one.rule},
                                 {"severity", report::name(one.severity)},
                                 {"of", name(one.whom)},
                                 {"message", one.message},
                                 {"remedy", one.remedy}});
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace joulediff::report
