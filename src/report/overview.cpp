// The upper half of a text report: what was compared, whether it may be, and the whole's energy.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/format.h"
#include "base/text_table.h"
#include "report/facts.h"
#include "report/prose.h"
#include "report/sections.h"

namespace joulediff::report {
namespace {

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

std::string number(double value) {
  const bool whole = value >= 0 && value < 1e15 && value == std::floor(value);
  return whole ? format_count(static_cast<std::uint64_t>(value)) : fmt::format("{:.3g}", value);
}

std::string meter(const Subject& one) {
  if (one.cost == nullptr) return "none";
  const attribute::Ledger& ledger = one.cost->ledger;
  return fmt::format("{}, {}: {}", joulediff::name(ledger.total.standing),
                     joulediff::name(ledger.boundary), ledger.meter.name);
}

std::string systematic_of(const meter::Meter& meter) {
  return meter.systematic ? format_percent(*meter.systematic) : "unknown";
}

std::string line(const attribute::Ledger& ledger, attribute::Line which) {
  const std::optional<Energy>& energy = ledger.line(which);
  return energy ? format(*energy) : "unknown";
}

std::string work(const Subject& one) {
  const run::Work& work = one.run->manifest.work;
  return fmt::format("{} {} a step", number(attribute::work_of_step(*one.run)), work.unit);
}

// Processes that ran at once are one repeat: the spread is that between launches.
std::string blocks(const Subject& one) {
  const std::size_t processes = one.run->blocks.size();
  std::set<std::uint32_t> orders;
  for (const run::Block& block : one.run->blocks) orders.insert(block.order);
  const std::size_t launches = orders.size();
  std::string text = fmt::format("{} {}", processes, processes == 1 ? "process" : "processes");
  if (launches < processes)
    text += fmt::format(", {} at once: a step is that of all", processes / launches);
  if (launches == 1 && processes > 0) text += "; no repeat";
  return text;
}

// A row of the header and the ledger: what, A, B (B only where there is one).
void add(TextTable& table, const Page& page, const std::string& what,
         const std::function<std::string(const Subject&)>& of) {
  std::vector<std::string> cells{what, of(page.a)};
  if (page.b) cells.push_back(of(*page.b));
  table.add(std::move(cells));
}

TextTable two_sides(const Page& page, Align align) {
  std::vector<TextColumn> columns{{"", Align::left, 12, Cut::end},
                                  {page.b ? "A" : "", align, 20, Cut::end}};
  if (page.b) columns.push_back({"B", align, 20, Cut::end});
  return TextTable(std::move(columns), kWidth);
}

// What is known of differences that are none.
std::string floor_of(const diagnose::Comparison& c) {
  if (!c.noise_floor) return " Undecided: without two processes a side there is no noise floor.";
  std::string words;
  if (std::abs(c.whole.value) <= *c.noise_floor && c.whole.value != 0)
    words = fmt::format(" Differences up to the noise floor, {}, count as none.",
                        percent(*c.noise_floor));
  if (c.machine)
    words += fmt::format(
        " On this machine {} processes of {} had energies with a standard deviation of {} "
        "({}driver {}), which is in the floor.",
        c.machine->processes, printable(or_unknown(c.machine->program)), percent(c.machine->whole),
        c.machine->date.empty() ? "" : c.machine->date + ", ",
        printable(or_unknown(c.machine->driver)));
  return words;
}

// "B uses 3.4 % less energy per token than A (2.9 % to 3.8 %)."
std::string conclusion(const Page& page) {
  const diagnose::Comparison& c = *page.comparison;
  const std::string unit = page.a.run->manifest.work.unit;
  const bool b_more = c.whole.value > 0;
  if (c.whole.low <= 0 && c.whole.high >= 0) {
    return fmt::format("No difference in energy per {} beyond the error: {}.{}", unit,
                       with_interval(c.whole), c.machine ? floor_of(c) : "");
  }
  const double low = std::min(std::abs(c.whole.low), std::abs(c.whole.high));
  const double high = std::max(std::abs(c.whole.low), std::abs(c.whole.high));
  return fmt::format("{} uses {} less energy per {} than {} ({} to {}).{}", b_more ? "A" : "B",
                     percent(std::abs(c.whole.value)), unit, b_more ? "B" : "A", percent(low),
                     percent(high), floor_of(c));
}

}  // namespace

std::string painted(const Page& page, Ink ink, const std::string& words) {
  if (!page.colour) return words;
  const char* code = ink == Ink::bold     ? "1"
                     : ink == Ink::red    ? "1;31"
                     : ink == Ink::yellow ? "1;33"
                                          : "1;32";
  return fmt::format("\033[{}m{}\033[0m", code, words);
}

std::string title(const Page& page, const std::string& words) {
  return "\n" + painted(page, Ink::bold, words) + "\n";
}

std::string header(const Page& page) {
  TextTable table = two_sides(page, Align::left);
  add(table, page, "label", [](const Subject& s) { return or_unknown(s.run->manifest.label); });
  add(table, page, "device", [](const Subject& s) { return or_unknown(s.run->manifest.device); });
  add(table, page, "framework",
      [](const Subject& s) { return or_unknown(s.run->manifest.framework); });
  add(table, page, "work", work);
  add(table, page, "recorded in", blocks);
  add(table, page, "meter", meter);
  return table.text("  ");
}

std::string comparability(const Page& page) {
  const rules::Verdict& verdict = page.comparison->comparable;
  std::string out;
  if (!verdict.ok) {
    out += "\n" + painted(page, Ink::red, "Not comparable:") + " no ratio is printed.\n";
  } else if (!verdict.reasons.empty()) {
    out += title(page, "Comparable, with reservations");
  }
  for (const Diagnostic& reason : verdict.reasons)
    out += entry(name(reason.severity), fmt::format("{} [{}]", told(reason), reason.rule));
  return out;
}

std::string energy(const Page& page) {
  if (page.a.cost == nullptr) return "\nNo energy was recorded.\n";
  std::string out = title(page, "Energy of a step");
  TextTable table = two_sides(page, Align::right);
  const Standing standing = page.a.cost->ledger.total.standing;
  const bool same = !page.b || page.b->cost->ledger.total.standing == standing;
  add(table, page, same ? std::string(name(standing)) : "energy",
      [](const Subject& s) { return format(s.cost->ledger.total); });
  add(table, page, "per " + page.a.run->manifest.work.unit,
      [](const Subject& s) { return format(s.cost->per_work_unit); });
  add(table, page, "time", [](const Subject& s) { return format(s.cost->ledger.step_time); });
  for (std::size_t i = 0; i < attribute::kLines; ++i) {
    const auto which = static_cast<attribute::Line>(i);
    add(table, page, fmt::format("  {}", attribute::name(which)),
        [which](const Subject& s) { return line(s.cost->ledger, which); });
  }
  add(table, page, "recognised",
      [](const Subject& s) { return format_percent(s.cost->recognised); });
  out += table.text("  ");
  const auto systematic = [](const Subject& s) { return systematic_of(s.cost->ledger.meter); };
  out +=
      entry("",
            fmt::format("Systematic error of the meter: {}, beside the intervals.{}",
                        systematic(page.a), page.b ? " It cancels in a ratio on one machine." : ""),
            0);
  if (!page.b) return out;
  out += entry("", conclusion(page), 0);
  if (page.gate) {
    const diagnose::Gate result = diagnose::gate(*page.comparison, *page.gate);
    const Ink ink = result == diagnose::Gate::passed   ? Ink::green
                    : result == diagnose::Gate::failed ? Ink::red
                                                       : Ink::yellow;
    out += "  " + painted(page, ink, fmt::format("Gate {}", diagnose::name(result))) +
           fmt::format(": B against A {}, limit {}.\n", with_interval(page.comparison->gate),
                       with_sign(*page.gate));
  }
  return out;
}

namespace {

const attribute::Ledger* ledger_called(const Subject& one, const std::string& name) {
  for (const auto& [called, ledger] : named_ledgers(one))
    if (called == name) return ledger;
  return nullptr;
}

// Of an outside meter, by how much its readings are late.
std::string lateness(const attribute::Ledger* ledger, const std::string& side) {
  if (ledger == nullptr || !ledger->meter.alignment) return "";
  const meter::Estimate& delay = ledger->meter.alignment->delay;
  const auto seconds = [](Nanoseconds ns) { return to_seconds(ns).value; };
  return fmt::format(" {}Its readings are {:.2f} s late ({:.2f} to {:.2f} s), which is taken off.",
                     side, seconds(delay.value), seconds(delay.low), seconds(delay.high));
}

std::string energy_by(const Page& page, const std::string& ledger_name) {
  const attribute::Ledger* a = ledger_called(page.a, ledger_name);
  const attribute::Ledger* b = page.b ? ledger_called(*page.b, ledger_name) : nullptr;
  std::string out = title(page, "Energy of a step, " + ledger_name);
  TextTable table = two_sides(page, Align::right);
  const auto of = [&](auto tell) {
    return [tell, &ledger_name](const Subject& s) -> std::string {
      const attribute::Ledger* ledger = ledger_called(s, ledger_name);
      return ledger == nullptr ? "unknown" : tell(*ledger);
    };
  };
  const attribute::Ledger& one = a != nullptr ? *a : *b;
  add(table, page, std::string(name(one.total.standing)),
      of([](const attribute::Ledger& ledger) { return format(ledger.total); }));
  std::string unknown;
  for (std::size_t i = 0; i < attribute::kLines; ++i) {
    const auto which = static_cast<attribute::Line>(i);
    if ((a != nullptr && a->line(which)) || (b != nullptr && b->line(which)))
      add(table, page, fmt::format("  {}", attribute::name(which)),
          of([which](const attribute::Ledger& ledger) { return line(ledger, which); }));
    else
      unknown += fmt::format("{}{}", unknown.empty() ? "" : ", ", attribute::name(which));
  }
  out += table.text("  ");
  std::string words =
      fmt::format("By {}; systematic error {}.", one.meter.name, systematic_of(one.meter));
  if (a != nullptr && b != nullptr && a->meter.name != b->meter.name)
    words += fmt::format(" B by {}: the two are not comparable.", b->meter.name);
  words += lateness(a, "") + lateness(b, "In B: ");
  words += " In no verdict and no ratio.";
  if (!unknown.empty()) words += fmt::format(" Unknown: {}.", unknown);
  return out + entry("", words, 0);
}

}  // namespace

std::string energy_beside(const Page& page) {
  std::vector<std::string> names;
  const auto add_names = [&](const Subject& subject) {
    for (const auto& [name, ledger] : named_ledgers(subject))
      if (ledger != &subject.cost->ledger && std::ranges::find(names, name) == names.end())
        names.push_back(name);
  };
  add_names(page.a);
  if (page.b) add_names(*page.b);
  std::string out;
  for (const std::string& name : names) out += energy_by(page, name);
  return out;
}

}  // namespace joulediff::report
