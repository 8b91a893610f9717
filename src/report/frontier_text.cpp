#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text_table.h"
#include "report/frontier.h"
#include "report/interval.h"
#include "report/prose.h"

namespace joulediff::report {
namespace {

using frontier::Axis;
using frontier::Better;
using frontier::Entrance;
using frontier::Entry;
using frontier::Group;
using frontier::Standing;
using rules::Interval;

std::string percentile(const FrontierPage& page, const Group& group) {
  for (const Entry& entry : group.entries)
    if (const auto& p = page.points[entry.point].scenario.slo_percentile)
      return fmt::format(" p{:g}", *p);
  return "";
}

std::string title(const FrontierPage& page, const Group& group, Axis axis) {
  const std::string known = frontier::unit_of(group, page.points);
  const std::string unit = known.empty() ? "unit" : known;
  switch (axis) {
    case Axis::energy: return "J/" + unit;
    case Axis::quality: return group.metric.empty() ? "quality" : group.metric;
    case Axis::latency: return "latency" + percentile(page, group);
    case Axis::rate: return unit + "s/s";
  }
  return "";
}

std::string value(Axis axis, double number) {
  switch (axis) {
    case Axis::energy: return format(Joules(number));
    case Axis::quality: return fmt::format("{:.6g}", number);
    case Axis::latency: return format(Seconds(number));
    case Axis::rate:
      return number >= 10 && number < 1e15
                 ? format_count(static_cast<std::uint64_t>(std::llround(number)))
                 : fmt::format("{:.3g}", number);
  }
  return "";
}

std::string cell(Axis axis, const std::optional<Interval>& on) {
  return axis == Axis::energy ? with_unit(on, "J")
         : on                 ? with_error(value(axis, on->value), *on)
                              : "unknown";
}

std::string marks(const std::vector<std::size_t>& entries) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, entries.size()); ++i)
    text += (i > 0 ? ", " : "") + mark(entries[i]);
  if (entries.size() > 3) text += fmt::format(" and {} more", entries.size() - 3);
  return text;
}

std::string standing(const Entry& entry) {
  switch (entry.entrance) {
    case Entrance::unsound: return "not sound";
    case Entrance::incomplete: return "incomplete";
    case Entrance::outside: return "outside the limits";
    case Entrance::at_limit: return "at a limit";
    case Entrance::placed: break;
  }
  switch (entry.placement.standing) {
    case Standing::best: return "best";
    case Standing::dominated: return "dominated by " + marks(entry.placement.by);
    case Standing::undecided: return "undecided: " + marks(entry.placement.by);
  }
  return "";
}

std::string table(const FrontierPage& page, const Group& group) {
  std::vector<TextColumn> columns{{"", Align::left, 2, Cut::end},
                                  {"measurement", Align::left, 12, Cut::begin}};
  const auto shown = [&](Axis axis) {
    return axis == Axis::energy || std::ranges::any_of(group.entries, [&](const Entry& e) {
             return e.at(axis).has_value();
           });
  };
  for (const Axis axis : frontier::kAllAxes)
    if (shown(axis)) columns.push_back({title(page, group, axis), Align::left, 10, Cut::end});
  columns.push_back({"", Align::left, 18, Cut::end});
  TextTable result(std::move(columns), kWidth);
  // The frontier is shown whole, of what is not on it the first.
  std::size_t left_out = 0, others = 0;
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    const Entry& entry = group.entries[i];
    const bool on_it =
        entry.entrance == Entrance::placed && entry.placement.standing != Standing::dominated;
    if (!on_it && ++others > page.top) {
      ++left_out;
      continue;
    }
    std::vector<std::string> cells{mark(i), page.points[entry.point].label};
    for (const Axis axis : frontier::kAllAxes)
      if (shown(axis)) cells.push_back(cell(axis, entry.at(axis)));
    cells.push_back(standing(entry));
    result.add(std::move(cells));
  }
  return result.text("  ") +
         (left_out > 0
              ? fmt::format("  and {} more that are not on the frontier (--top)\n", left_out)
              : "");
}

// What x is, held against y: "30 % less energy; ROUGE-1 43.1, not 44.5 (worse); latency p99 within
// the intervals".
std::string trade(const FrontierPage& page, const Group& group, const Entry& x, const Entry& y) {
  std::string text;
  const std::vector<Better> directions = group.directions();
  for (std::size_t k = 0; k < group.axes.size(); ++k) {
    const Axis axis = group.axes[k];
    const Interval &a = *x.at(axis), &b = *y.at(axis);
    const bool decided = a.high < b.low || a.low > b.high;
    std::string what = axis == Axis::energy    ? "energy"
                       : axis == Axis::quality ? title(page, group, axis)
                       : axis == Axis::rate    ? "rate"
                                               : title(page, group, axis);
    if (a == b && a.low == a.high) {
      what += " equal";
    } else if (!decided) {
      what += a.bounded() && b.bounded() ? " within the intervals" : " not known well enough";
    } else if (axis == Axis::energy) {
      what = fmt::format("{} {} energy",
                         format_percent(std::abs(a.value - b.value) / std::max(a.value, b.value)),
                         a.value < b.value ? "less" : "more");
    } else {
      const bool better = (a.value < b.value) == (directions[k] == Better::lower);
      const std::string_view word =
          axis == Axis::quality ? (better ? "better" : "worse") : (better ? "faster" : "slower");
      what += fmt::format(" {} against {} ({})", value(axis, a.value), value(axis, b.value), word);
    }
    text += (text.empty() ? "" : "; ") + what;
  }
  return text;
}

std::string trades(const FrontierPage& page, const Group& group) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::size_t previous = group.entries.size();
  for (std::size_t i = group.entries.size(); i-- > 0;) {
    const Entry& entry = group.entries[i];
    if (entry.entrance != Entrance::placed || entry.placement.standing != Standing::best) continue;
    if (previous != group.entries.size())
      lines.emplace_back(fmt::format("{} for {}", mark(i), mark(previous)),
                         trade(page, group, entry, group.entries[previous]));
    previous = i;
  }
  std::string out;
  if (!lines.empty()) out += "\n  Along the frontier\n";
  for (std::size_t i = 0; i < std::min(lines.size(), page.top); ++i)
    out += entry("  " + lines[i].first, lines[i].second, 14);
  if (lines.size() > page.top)
    out += fmt::format("    and {} more (--top)\n", lines.size() - page.top);

  lines.clear();
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    const Entry& entry = group.entries[i];
    if (entry.entrance != Entrance::placed) {
      lines.emplace_back(mark(i), entry.why);
    } else if (entry.placement.standing != Standing::best) {
      const std::size_t by = entry.placement.by.front();
      lines.emplace_back(
          mark(i), fmt::format("{} {}: {}", mark(by),
                               entry.placement.standing == Standing::dominated ? "dominates it"
                                                                               : "may dominate it",
                               trade(page, group, group.entries[by], entry)));
    }
  }
  if (!lines.empty()) out += "\n  Not on it\n";
  for (std::size_t i = 0; i < std::min(lines.size(), page.top); ++i)
    out += entry("  " + lines[i].first, lines[i].second, 4);
  if (lines.size() > page.top)
    out += fmt::format("    and {} more (--top)\n", lines.size() - page.top);
  return out;
}

std::string conclusion(const FrontierPage& page, const Group& group) {
  const bool limited = page.question.quality_at_least || page.question.latency_at_most;
  const std::string within = limited ? " that keeps the limits" : "";
  if (group.least.empty())
    return limited ? "  Nothing surely keeps the limits.\n"
                   : "  Nothing can be held against anything.\n";
  const Entry& least = group.entries[group.least.front()];
  if (group.least.size() == 1)
    return entry("Least energy",
                 fmt::format("of all{}: {}, {} ({})", within, mark(group.least.front()),
                             printable(page.points[least.point].label),
                             with_unit(least.at(Axis::energy), "J")),
                 13);
  return entry("Least energy",
               fmt::format("of all{}: undecided between {}", within, marks(group.least)), 13);
}

}  // namespace

std::string text(const FrontierPage& page) {
  std::string out;
  for (const Group& group : page.frontier.groups) {
    if (!out.empty()) out += "\n";
    const auto count = [&](auto&& of) { return std::ranges::count_if(group.entries, of); };
    const auto placed = [](Standing wanted) {
      return [wanted](const Entry& e) {
        return e.entrance == Entrance::placed && e.placement.standing == wanted;
      };
    };
    const auto apart = count([](const Entry& e) { return e.entrance != Entrance::placed; });
    std::string axes;
    for (const Axis axis : group.axes)
      axes += (axes.empty() ? " by " : ", ") + (axis == Axis::energy ? "energy"
                                                : axis == Axis::rate ? "rate"
                                                                     : title(page, group, axis));
    out += truncated(printable(frontier::describe(group, page.points)), kWidth) + "\n" +
           entry("",
                 fmt::format("{} measurement{}{}: {} best, {} undecided, {} dominated, {} apart",
                             group.entries.size(), group.entries.size() == 1 ? "" : "s", axes,
                             count(placed(Standing::best)), count(placed(Standing::undecided)),
                             count(placed(Standing::dominated)), apart),
                 0);
    out += "\n" + table(page, group);
    if (const std::string drawn = plot(group); !drawn.empty()) out += "\n" + drawn;
    out += trades(page, group) + "\n" + conclusion(page, group);
    for (const std::string& note : group.notes) out += entry("note", note, 5);
  }
  return out;
}

}  // namespace joulediff::report
