#include "report/facility_parts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "report/facts.h"
#include "report/prose.h"

namespace joulediff::report {

namespace {

using facility::Alternative;
using facility::Input;
using facility::Measure;
using facility::Pair;
using facility::Plan;
using facility::Range;
using facility::Section;
using facility::Study;

constexpr std::size_t kSideBySide = 2;  // alternatives in a table of 100 columns
constexpr std::size_t kTurns = 12;      // values at which the order turns over, beyond the ranges

std::string with_prefix(double value, const std::string& unit) {
  std::string text = format_quantity(value, unit.empty() ? "" : " " + unit);
  const std::size_t twice = text.find("  ");  // no prefix was needed
  if (twice != std::string::npos) text.erase(twice, 1);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string name_of(const Study& study, std::size_t alternative) {
  return printable(study.plan.alternatives[alternative].name);
}

std::string signed_range(const Range& range) {
  if (range.low == range.high) return with_sign(range.base);
  return fmt::format("{} ({} to {})", with_sign(range.base), with_sign(range.low),
                     with_sign(range.high));
}

Part head(const Study& study) {
  const Plan& plan = study.plan;
  Part part;
  part.title = plan.title.empty() ? "A site's year" : printable(plan.title);
  PartTable table{{{"", Align::left, 10, Cut::end}, {"", Align::left, 40, Cut::end}}, {}};
  const auto row = [&](const char* what, std::string says) {
    table.rows.push_back({what, std::move(says)});
  };
  row("year", fmt::format("{} in {}, {} hours", plan.year, plan.zone.name(),
                          format_count(plan.hours.size())));
  row("unit of work", printable(plan.service.unit));
  row("in time",
      fmt::format(
          "{} of the units{}", format_percent(plan.slo.share),
          plan.slo.wait ? fmt::format(" wait at most {}", format(Seconds(*plan.slo.wait))) : ""));
  row("spares", fmt::format("N+{}", plan.redundancy));
  if (plan.pue.level.valid())
    row("PUE",
        fmt::format("{}{}",
                    plan.pue.varies()
                        ? "by the hour"
                        : fmt::format("{:.3g}", plan.inputs[plan.pue.level.index()].range.base),
                    plan.pue_source.empty() ? "" : "; " + printable(plan.pue_source)));
  if (plan.price.level.valid())
    row("tariff",
        fmt::format("{}{}", plan.price.varies() ? "by the hour" : "flat",
                    plan.tariff_source.empty() ? "" : "; " + printable(plan.tariff_source)));
  if (plan.carbon.level.valid())
    row("carbon",
        fmt::format("{}, {}, by {}{}{}", printable(plan.carbon_zone), plan.carbon_kind,
                    plan.carbon_basis, plan.carbon.varies() ? ", by the hour" : "",
                    plan.carbon.provider.empty() ? "" : "; " + printable(plan.carbon.provider)));
  row("ranked by", std::string(facility::name(plan.aim)));
  part.tables.push_back(std::move(table));
  part.after.push_back(
      "Everything below the devices is modelled. A range comes of the inputs' low and high, one "
      "changed at a time, as the root of the sum of squares.");
  return part;
}

Part devices(const Study& study) {
  const Plan& plan = study.plan;
  Part part;
  part.title = "Devices, without site";
  part.before.push_back(
      fmt::format("J per {} at load, at the boundary of the meter. No PUE, no idle "
                  "time and no spare is in it.",
                  printable(plan.service.unit)));
  PartTable table{{{"", Align::left, 8, Cut::end},
                   {fmt::format("J per {}", printable(plan.service.unit)), Align::right},
                   {"boundary", Align::left},
                   {"standing", Align::left, 9, Cut::end},
                   {"from", Align::left, 20, Cut::begin}},
                  {}};
  for (std::size_t i = 0; i < study.subjects.size(); ++i) {
    const Alternative& one = plan.alternatives[i];
    const Input& joules = plan.inputs[one.joules_per_unit.index()];
    table.rows.push_back(
        {name_of(study, i), facility_range(study.subjects[i].device, "J", plan),
         std::string(joulediff::name(one.boundary)),
         std::string(joulediff::name(study.subjects[i].device_standing)),
         printable(joules.origin) + (one.meter.empty() ? "" : ", " + printable(one.meter))});
    if (one.work_per_unit.valid())
      part.after.push_back(fmt::format(
          "{}: {} a {}, {} at the {}.", name_of(study, i), facility_range(joules.range, "J", plan),
          one.run_unit.empty() ? "unit of its run" : printable(one.run_unit),
          joulediff::name(joules.standing), joulediff::name(one.boundary)));
  }
  part.after.emplace_back(
      "Whether the devices differ, and why, is for `joulediff compare` to say, from the runs "
      "alone.");
  part.tables.push_back(std::move(table));
  return part;
}

Part section(const Study& study, Section which) {
  Part part;
  part.title = fmt::format("{} (modelled)", facility::title(which));
  const auto& all = facility::measures();
  for (std::size_t from = 0; from < study.subjects.size(); from += kSideBySide) {
    const std::size_t to = std::min(study.subjects.size(), from + kSideBySide);
    PartTable table{{{"", Align::left, 20, Cut::end}}, {}};
    const bool bounded = std::any_of(all.begin(), all.end(), [&](const Measure& one) {
      return one.section == which && one.boundary.has_value();
    });
    if (bounded) table.columns.push_back({"boundary", Align::left});
    for (std::size_t a = from; a < to; ++a)
      table.columns.push_back({truncated(name_of(study, a), 30), Align::right});
    for (std::size_t m = 0; m < all.size(); ++m) {
      if (all[m].section != which) continue;
      std::vector<std::string> row{std::string(all[m].label)};
      if (bounded)
        row.push_back(all[m].boundary ? std::string(joulediff::name(*all[m].boundary)) : "");
      for (std::size_t a = from; a < to; ++a)
        row.push_back(
            facility_range(study.subjects[a].values[m], unit_of(all[m], study.plan), study.plan));
      table.rows.push_back(std::move(row));
    }
    part.tables.push_back(std::move(table));
  }
  return part;
}

std::string share_of_best(const Study& study, const Pair& pair) {
  return fmt::format("{} takes {} of the {} of {} away: {}", name_of(study, pair.best),
                     percent(pair.difference.base), facility::name(study.plan.aim),
                     name_of(study, pair.other), signed_range(pair.difference));
}

Part order(const Study& study) {
  Part part;
  part.title = fmt::format("Order, by {}", facility::name(study.plan.aim));
  if (study.ranking.empty()) {
    part.before.push_back("None: the alternatives do not do the same work (see the notes).");
    return part;
  }
  part.before.push_back(
      "The difference is (other - best) / the larger, with shared inputs alike on "
      "both sides.");
  PartTable table{{{"", Align::left, 4, Cut::end},
                   {"", Align::left, 20, Cut::end},
                   {std::string(facility::name(study.plan.aim)), Align::right},
                   {"difference", Align::right},
                   {"", Align::left, 12, Cut::end}},
                  {}};
  const std::string unit = aim_unit(study.plan);
  for (std::size_t place = 0; place < study.ranking.size(); ++place) {
    const std::size_t a = study.ranking[place];
    std::vector<std::string> row{
        fmt::format("{}.", place + 1), name_of(study, a),
        facility_value(study.subjects[a].year.of(study.plan.aim), unit, study.plan)};
    if (place > 0) {
      const Range& difference = study.pairs[place - 1].difference;
      row.push_back(signed_range(difference));
      row.emplace_back(difference.low > 0 ? "" : "not sure: the range holds 0");
    }
    table.rows.push_back(std::move(row));
  }
  part.tables.push_back(std::move(table));
  return part;
}

Part tornado(const Study& study, const Pair& pair) {
  Part part;
  part.title = fmt::format("What {} against {} rests on", name_of(study, pair.best),
                           name_of(study, pair.other));
  part.before.push_back(fmt::format(
      "{}. Below, the difference with one input at its low and at its high; under 0 {} is better.",
      share_of_best(study, pair), name_of(study, pair.other)));
  if (pair.tornado.empty()) {
    part.before.emplace_back("No input with a range moves it.");
    return part;
  }
  part.tornado = &pair;
  PartTable table{{{"input", Align::left, 16, Cut::begin},
                   {"low", Align::right},
                   {"difference", Align::right},
                   {"high", Align::right},
                   {"difference", Align::right}},
                  {}};
  for (const facility::Swing& swing : pair.tornado) {
    const Input& input = study.plan.inputs[swing.input.index()];
    table.rows.push_back({printable(input.key), input_value(input.range.low, input),
                          with_sign(swing.at_low), input_value(input.range.high, input),
                          with_sign(swing.at_high)});
  }
  part.tables.push_back(std::move(table));
  return part;
}

Part turns(const Study& study, const Pair& pair) {
  Part part;
  part.title = fmt::format("Where {} and {} change places", name_of(study, pair.best),
                           name_of(study, pair.other));
  if (pair.break_even.empty()) {
    part.before.emplace_back("No single input within a factor of 10 turns the order over.");
    return part;
  }
  PartTable table{{{"input", Align::left, 16, Cut::begin},
                   {"base", Align::right},
                   {"turns over at", Align::right},
                   {"", Align::left, 20, Cut::end}},
                  {}};
  std::size_t beyond = 0;
  for (const facility::BreakEven& one : pair.break_even) {
    if (!one.within_range && beyond++ >= kTurns) continue;
    const Input& input = study.plan.inputs[one.input.index()];
    table.rows.push_back({printable(input.key), input_value(input.range.base, input),
                          input_value(one.value, input),
                          one.within_range ? "within its range"
                          : input.ranged   ? "beyond its range"
                                           : "no range was given"});
  }
  if (beyond > kTurns)
    part.after.push_back(fmt::format("and {} more, farther off", beyond - kTurns));
  part.tables.push_back(std::move(table));
  return part;
}

Part demand(const Study& study) {
  const Plan& plan = study.plan;
  Part part;
  part.title = "Growth and rebound, in no figure above";
  if (std::isnan(study.demand.factor.base)) {
    part.before.emplace_back("Growth of demand: unknown; the plan gives none.");
  } else {
    part.before.push_back(fmt::format(
        "After {} {} of growth the service is {:.3g} times as large ({:.3g} to {:.3g}):",
        plan.service.years, plan.service.years == 1 ? "year" : "years", study.demand.factor.base,
        study.demand.factor.low, study.demand.factor.high));
    PartTable table{{{"", Align::left, 12, Cut::end},
                     {"energy of the site", Align::right},
                     {"replicas", Align::right},
                     {"peak", Align::right}},
                    {}};
    for (std::size_t a = 0; a < study.subjects.size(); ++a)
      table.rows.push_back({truncated(name_of(study, a), 20),
                            facility_range(study.demand.energy[a], "J", plan),
                            fmt::format("{:.0f}", study.demand.replicas[a].base),
                            facility_value(study.demand.peak[a].base, "W", plan)});
    part.tables.push_back(std::move(table));
  }
  const std::string unit = aim_unit(plan);
  for (std::size_t i = 0; i < study.pairs.size(); ++i) {
    const facility::Rebound& one = study.rebound[i];
    const std::string saving = fmt::format(
        "{} saves {} a year over {} at equal demand", name_of(study, study.pairs[i].best),
        facility_value(one.saving, unit, plan), name_of(study, study.pairs[i].other));
    part.after.push_back(
        std::isnan(one.share.base)
            ? saving + "; how much of that more use takes back (rebound) is unknown."
            : fmt::format("{}; more use takes {} back ({:.3g} of it), and {} is left.", saving,
                          facility_range(one.taken_back, unit, plan), one.share.base,
                          facility_range(one.left, unit, plan)));
  }
  return part;
}

Part inputs(const Study& study) {
  Part part;
  part.title = "Inputs";
  PartTable table{{{"input", Align::left, 16, Cut::begin},
                   {"low", Align::right},
                   {"base", Align::right},
                   {"high", Align::right},
                   {"standing", Align::left, 9, Cut::end},
                   {"from", Align::left, 12, Cut::begin}},
                  {}};
  for (const Input& input : study.plan.inputs)
    table.rows.push_back({printable(input.key),
                          input.ranged ? input_value(input.range.low, input) : "unknown",
                          input_value(input.range.base, input),
                          input.ranged ? input_value(input.range.high, input) : "unknown",
                          std::string(joulediff::name(input.standing)), printable(input.origin)});
  part.tables.push_back(std::move(table));
  return part;
}

Part notes(const Study& study) {
  Part part;
  part.title = "Notes";
  for (const Diagnostic& one : study.diagnostics)
    part.after.push_back(
        fmt::format("{}: {} [{}]", name(one.severity), printable(one.message), one.rule));
  return part;
}

}  // namespace

std::string unit_of(const Measure& measure, const Plan& plan) {
  if (measure.unit == "currency") return plan.currency;
  std::string unit(measure.unit);
  const std::size_t at = unit.find("unit");
  if (at != std::string::npos) unit.replace(at, 4, plan.service.unit);
  return unit;
}

std::string aim_unit(const Plan& plan) {
  switch (plan.aim) {
    case Plan::Aim::energy: return "J";
    case Plan::Aim::cost: return plan.currency;
    case Plan::Aim::carbon: return "g";
  }
  return "";
}

std::string facility_value(double value, std::string_view unit, const Plan& plan) {
  if (std::isnan(value)) return "unknown";
  if (unit == "ratio") return format_percent(value);
  if (unit == "J" && std::fabs(value) >= 3.6e6) return format_quantity(value / 3600, "Wh");
  if (unit.ends_with("/" + plan.service.unit)) unit = unit.substr(0, unit.find('/'));
  if (unit == "g" && std::fabs(value) >= 1e6) return with_prefix(value / 1e6, "t");
  if (unit == "J" || unit == "W" || unit == "g") return format_quantity(value, unit);
  if (unit.empty() && std::fabs(value) < 1e6) return fmt::format("{:.0f}", value);  // replicas
  if (unit == plan.service.unit || unit.empty()) return with_prefix(value, "");
  return with_prefix(value, printable(unit));
}

std::string facility_range(const Range& range, std::string_view unit, const Plan& plan) {
  const std::string base = facility_value(range.base, unit, plan);
  if (std::isnan(range.base) || range.low == range.high) return base;
  std::string low = facility_value(range.low, unit, plan);
  std::string high = facility_value(range.high, unit, plan);
  // A unit that all three share is said once.
  const auto unit_in = [](const std::string& text) {
    return text.substr(std::min(text.size(), text.find(' ')));
  };
  if (unit_in(low) == unit_in(base) && unit_in(high) == unit_in(base)) {
    low.resize(low.size() - unit_in(base).size());
    high.resize(high.size() - unit_in(base).size());
  }
  return fmt::format("{} ({} to {})", base, low, high);
}

std::string input_value(double value, const Input& input) {
  if (input.unit == "J" || input.unit == "W") return format_quantity(value, input.unit);
  const bool large = std::fabs(value) >= 1e5 || (value != 0 && std::fabs(value) < 1e-3);
  const std::string number = large                      ? with_prefix(value, "")
                             : std::fabs(value) >= 1000 ? fmt::format("{:.0f}", value)
                                                        : fmt::format("{:.4g}", value);
  if (input.unit.empty()) return number;
  return number + (input.unit.starts_with('/') ? "" : " ") + printable(input.unit);
}

std::vector<Part> facility_parts(const Study& study) {
  std::vector<Part> parts{head(study), devices(study)};
  for (const Section which : {Section::service, Section::replicas, Section::energy,
                              Section::per_unit, Section::power, Section::cost, Section::carbon})
    if (!(which == Section::cost && !study.plan.price.level.valid()) &&
        !(which == Section::carbon && !study.plan.carbon.level.valid()))
      parts.push_back(section(study, which));
  if (study.subjects.size() > 1) parts.push_back(order(study));
  for (const Pair& pair : study.pairs) {
    parts.push_back(tornado(study, pair));
    parts.push_back(turns(study, pair));
  }
  parts.push_back(demand(study));
  parts.push_back(inputs(study));
  if (!study.diagnostics.empty()) parts.push_back(notes(study));
  return parts;
}

}  // namespace joulediff::report
