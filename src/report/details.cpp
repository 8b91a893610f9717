// The lower half of a text report: findings, regions, operators, what stayed unmatched, notes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "base/text_table.h"
#include "diagnose/evidence.h"
#include "report/facts.h"
#include "report/prose.h"
#include "report/sections.h"

namespace joulediff::report {
namespace {

std::string verdict_word(diagnose::Outcome outcome) {
  return outcome == diagnose::Outcome::waste       ? "Waste"
         : outcome == diagnose::Outcome::trade_off ? "Trade-off"
                                                   : "Undecided";
}

Ink verdict_ink(diagnose::Outcome outcome) {
  return outcome == diagnose::Outcome::waste ? Ink::red : Ink::yellow;
}

std::string regions_of(const Page& page, const diagnose::Finding& finding) {
  const diagnose::RegionResult& first = page.comparison->regions[finding.regions.front()];
  std::string words =
      finding.regions.size() == 1
          ? fmt::format("region {}", region_id(first))
          : fmt::format("{} regions from {}", finding.regions.size(), region_id(first));
  words += fmt::format(", difference {}", with_interval(finding.difference));
  words += first.noise_floor ? fmt::format(", noise floor {}", format_percent(*first.noise_floor))
                             : ", no noise floor";
  return words;
}

std::string finding_text(const Page& page, const diagnose::Finding& one) {
  const char* side = one.side == diagnose::Side::a ? "A" : "B";
  std::string out = fmt::format("  {}. ", one.rank);
  out += painted(page, verdict_ink(one.outcome),
                 fmt::format("{} in {}", verdict_word(one.outcome), side));
  out += fmt::format(": {} a step, {} of {}'s energy\n", with_interval(one.saving),
                     format_percent(one.share_of_run), side);
  constexpr std::size_t kLabel = 15;
  out += entry("   what", one.cause.message, kLabel);
  if (one.cause.where) out += entry("   where", text(*one.cause.where), kLabel);
  if (one.cause.called_from && one.cause.called_from != one.cause.where)
    out += entry("   called from", text(*one.cause.called_from), kLabel);
  out += entry("   cause",
               fmt::format("{}: {} ({})", diagnose::name(one.cause.kind), one.cause.key,
                           diagnose::name(one.cause.standing)),
               kLabel);
  out += entry("   advice", one.advice, kLabel);
  if (!one.known_issue.empty()) out += entry("   known as", one.known_issue, kLabel);
  if (!one.regions.empty()) out += entry("   evidence", regions_of(page, one), kLabel);
  return out;
}

// "mul, pow, add +1": what a side of a region does.
std::string does(const run::Run& run, const diagnose::RegionSide& side) {
  std::vector<std::string> names;
  for (const run::OperatorId id : side.operators) {
    const run::Operator& op = run.operators[id.index()];
    std::string short_one(diagnose::short_name(diagnose::base_name(op.name)));
    if (!op.view && std::find(names.begin(), names.end(), short_one) == names.end())
      names.push_back(std::move(short_one));
  }
  constexpr std::size_t kMost = 3;
  std::string words;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i)
    words += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMost) words += fmt::format(" +{}", names.size() - kMost);
  return words.empty() ? "-" : words;
}

std::string verdict_cell(const diagnose::RegionResult& region) {
  std::string words(diagnose::name(region.outcome));
  if (region.inputs_differ) words += ", inputs differ";
  if (!region.outputs_agree) words += ", outputs differ";
  if (region.matched_by == match::MatchedBy::name) words += ", by name";
  return words;
}

}  // namespace

std::string findings(const Page& page) {
  const auto& all = page.comparison->findings;
  std::string out = title(page, "Findings");
  if (all.empty()) return out + "  None.\n";
  for (std::size_t i = 0; i < std::min(all.size(), page.top); ++i) {
    if (i > 0) out += "\n";
    out += finding_text(page, all[i]);
  }
  if (all.size() > page.top)
    out += fmt::format("  and {} more (--top {})\n", all.size() - page.top, all.size());
  return out;
}

std::string regions(const Page& page) {
  const std::vector<RegionRow> rows = region_rows(page);
  std::string out = title(page, "Regions, largest difference first");
  if (rows.empty()) return out + "  None matched.\n";
  TextTable table({{"first", Align::left, 5, Cut::end},
                   {"times", Align::right, 5, Cut::end},
                   {"A", Align::right, 8, Cut::end},
                   {"B", Align::right, 8, Cut::end},
                   {"difference", Align::right, 8, Cut::end},
                   {"verdict", Align::left, 9, Cut::end},
                   {"A does", Align::left, 10, Cut::end},
                   {"B does", Align::left, 10, Cut::end}},
                  kWidth);
  for (std::size_t i = 0; i < std::min(rows.size(), page.top); ++i) {
    const diagnose::RegionResult& first = page.comparison->regions[rows[i].regions.front()];
    const double a = rows[i].joules_a, b = rows[i].joules_b;
    const bool known = !std::isnan(a + b);
    const double larger = std::max(a, b);
    table.add({region_id(first), std::to_string(rows[i].regions.size()), format(Joules(a)),
               format(Joules(b)), !known ? "unknown" : with_sign(larger > 0 ? (b - a) / larger : 0),
               verdict_cell(first), does(*page.a.run, first.a), does(*page.b->run, first.b)});
  }
  out += table.text("  ");
  if (rows.size() > page.top)
    out += fmt::format("  and {} more (--top {})\n", rows.size() - page.top, rows.size());
  return out;
}

std::string unmatched(const Page& page) {
  const diagnose::Comparison& c = *page.comparison;
  if (c.unmatched_a.operators.empty() && c.unmatched_b.operators.empty()) return {};
  const auto side = [](const Subject& subject, const diagnose::Unmatched& one) {
    const std::string count =
        fmt::format("{} of {} operators", one.operators.size(), subject.run->operators.size());
    if (!one.known) return count + ", energy unknown";
    return fmt::format("{}, {}, {} of the energy", count, format(one.energy),
                       format_percent(one.energy.joules / subject.cost->ledger.total.joules));
  };
  return title(page, "Unmatched") + entry("A", side(page.a, c.unmatched_a)) +
         entry("B", side(*page.b, c.unmatched_b));
}

std::string operators(const Page& page) {
  const std::vector<OperatorRow> rows = operator_rows(page.a);
  if (rows.empty()) return {};
  const bool referred =
      std::ranges::any_of(rows, [](const OperatorRow& row) { return row.reference.has_value(); });
  const bool calibrated = std::ranges::any_of(
      rows, [](const OperatorRow& row) { return row.least_energy.has_value(); });
  std::vector<TextColumn> columns{{"operator", Align::left, 16, Cut::end},
                                  {"calls", Align::right, 5, Cut::end},
                                  {"energy", Align::right, 8, Cut::end},
                                  {"share", Align::right, 6, Cut::end},
                                  {"time", Align::right, 8, Cut::end}};
  if (referred) columns.push_back({"of the least", Align::left, 12, Cut::end});
  if (calibrated) columns.push_back({"least energy", Align::right, 12, Cut::end});
  columns.push_back({"standing", Align::left, 9, Cut::end});
  columns.push_back({"dearest at", Align::left, 24, Cut::begin});
  TextTable table(std::move(columns), kWidth);
  for (std::size_t i = 0; i < std::min(rows.size(), page.top); ++i) {
    const OperatorRow& row = rows[i];
    std::vector<std::string> cells{
        row.name, format_count(row.calls), row.known ? format(row.energy) : "unknown",
        row.known ? format_percent(row.share) : "unknown", format(row.seconds)};
    if (referred)
      cells.push_back(row.reference ? fmt::format("{:.{}f}x {}", row.reference->distance,
                                                  row.reference->distance < 10 ? 1 : 0,
                                                  name(row.reference->bound))
                                    : "");
    if (calibrated)
      cells.push_back(row.least_energy ? fmt::format("{:.{}f}x", row.least_energy->distance,
                                                     row.least_energy->distance < 10 ? 1 : 0)
                                       : "unknown");
    cells.push_back(row.known ? std::string(joulediff::name(row.energy.standing)) : "");
    cells.push_back(row.where ? line_of(*row.where) : "");
    table.add(std::move(cells));
  }
  std::string out =
      title(page, "Operators, a step (dynamic energy and their share of static power)");
  out += table.text("  ");
  if (rows.size() > page.top)
    out += fmt::format("  and {} more (--operators {})\n", rows.size() - page.top, rows.size());
  if (referred)
    out += entry("",
                 "Of the least: time over what the board's peaks need for the same arithmetic and "
                 "bytes, and the peak that binds. Under 1: the data came from its cache.",
                 0);
  if (calibrated)
    out += entry("",
                 "Least energy: joules above static power over what the board's calibration says "
                 "that the same arithmetic and bytes cost at least.",
                 0);
  return out;
}

std::string notes(const Page& page) {
  std::string out;
  const auto add = [&](const Subject& subject, const std::string& side) {
    for (const Diagnostic& one : diagnostics(subject)) {
      const std::string times = one.count > 1 ? fmt::format(" ({} times)", one.count) : "";
      out += entry(fmt::format("{}{}", side, name(one.severity)),
                   fmt::format("{}{} [{}]", told(one), times, one.rule), side.empty() ? 9 : 11);
    }
  };
  add(page.a, page.b ? "A " : "");
  if (page.b) add(*page.b, "B ");
  return out.empty() ? out : title(page, "Notes") + out;
}

}  // namespace joulediff::report
