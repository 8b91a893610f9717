#include "frontier/frontier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "frontier/groups.h"
#include "meter/spread.h"
#include "rules/direction.h"
#include "rules/grammar_rules.h"

namespace joulediff::frontier {
namespace {

using rules::Interval;
using run::Fact;
using run::Point;
using Points = std::span<const Point>;

// What two runs of one program differ by, where nobody says how far the value may be off.
std::optional<Interval> as_stated(const Fact& value, const Fact& uncertainty, double otherwise) {
  if (!value || !std::isfinite(*value)) return {};
  return Interval::around(*value, std::abs(*value) * uncertainty.value_or(otherwise));
}

std::optional<Interval> rate_of(const Point& p) {
  const std::vector<double>& runs = p.repeats.seconds;
  if (runs.size() >= 2) {
    const double seconds = meter::mean(runs);
    const Interval rate =
        Interval::exact(1) / Interval::around(seconds, meter::spread_of_mean(runs));
    if (!std::isfinite(rate.value)) return {};
    return rate;
  }
  Fact rate;
  if (!runs.empty())
    rate = 1 / runs.front();
  else if (p.work.count && p.window.seconds && *p.window.seconds > 0)
    rate = *p.work.count / *p.window.seconds;
  return as_stated(rate, {}, rules::assumed_spread(p));
}

// The common value of a fact: the first that is known.
template <class F>
std::string common(Points points, const Group& group, F&& fact) {
  std::set<std::string> known;
  for (const Entry& entry : group.entries)
    if (std::string value = fact(points[entry.point]); !value.empty())
      known.insert(std::move(value));
  return known.size() == 1 ? *known.begin() : std::string();
}

class Builder {
 public:
  Builder(Points points, const Question& question) : points_(points), question_(question) {}

  Result<Group> build(const std::vector<std::size_t>& members) const {
    Group group;
    group.one_meter = members.size() > 1 && std::ranges::all_of(members, [&](std::size_t i) {
                        return rules::measured_alike(points_[members.front()], points_[i]);
                      });
    for (const std::size_t i : members) group.entries.push_back(entry_of(i, group.one_meter));
    std::ranges::sort(group.entries, [&](const Entry& x, const Entry& y) { return before(x, y); });
    group.metric = common(points_, group, [](const Point& p) { return p.quality.metric; });
    JD_TRY(choose_axes(group));
    for (Entry& entry : group.entries) admit(group, entry);
    hold_against_each_other(group);
    tell(group);
    return group;
  }

 private:
  Entry entry_of(std::size_t index, bool one_meter) const {
    const Point& p = points_[index];
    const rules::Margin margin = rules::margin_of(p);
    Entry entry;
    entry.point = index;
    entry.assumed = margin.assumed;
    // A metric on a fixed data set is no estimate; where it is one, somebody says how good.
    entry.on = {rules::per_unit(p, one_meter ? margin.random : margin.with_systematic()),
                as_stated(p.quality.value, p.quality.uncertainty, 0),
                as_stated(p.scenario.observed_seconds, p.scenario.observed_uncertainty,
                          rules::assumed_spread(p)),
                rate_of(p)};
    return entry;
  }

  bool before(const Entry& x, const Entry& y) const {
    constexpr double kLast = std::numeric_limits<double>::infinity();
    const auto key = [&](const Entry& e) {
      const auto& energy = e.at(Axis::energy);
      return std::tuple(energy ? energy->value : kLast, points_[e.point].label, e.point);
    };
    return key(x) < key(y);
  }

  Status choose_axes(Group& group) const {
    const auto known = [&](Axis axis) {
      return std::ranges::any_of(group.entries,
                                 [&](const Entry& e) { return e.at(axis).has_value(); });
    };
    for (const Axis axis : kAllAxes) {
      const bool asked = std::ranges::find(question_.by, axis) != question_.by.end();
      // Under a given load all have its rate, and could never be told apart by it.
      const bool told = axis == Axis::rate && known(Axis::latency);
      if (question_.by.empty() ? known(axis) && !told : asked) group.axes.push_back(axis);
    }
    const bool quality = std::ranges::find(group.axes, Axis::quality) != group.axes.end();
    if (!quality && !question_.quality_at_least) return {};
    JD_ASSIGN(group.better, direction(group));
    return {};
  }

  Result<std::optional<Better>> direction(const Group& group) const {
    if (const auto asked = question_.directions.find(group.metric);
        asked != question_.directions.end())
      return asked->second;
    std::optional<Better> way = rules::known_direction(group.metric);
    const Point* first = nullptr;
    for (const Entry& entry : group.entries) {
      const Point& p = points_[entry.point];
      if (!p.quality.value) continue;
      if (first == nullptr) first = &p;
      if (!p.quality.higher_is_better) continue;
      const Better said = *p.quality.higher_is_better ? Better::higher : Better::lower;
      if (way && *way != said)
        return fail(ExitCode::bad_input,
                    fmt::format("{}: quality.higher_is_better is {}, but {} is better the other "
                                "way; set it right, or say --better METRIC=higher or =lower",
                                printable(p.label), *p.quality.higher_is_better,
                                printable(rules::said(group.metric))));
      way = said;
    }
    if (way || first == nullptr) return way;
    return fail(
        ExitCode::usage,
        group.metric.empty()
            ? fmt::format("{}: the metric of its quality is not known; state quality.metric",
                          printable(first->label))
            : fmt::format("{}: nobody says which way {} is better; say --better \"{}=higher\" or "
                          "=lower, or "
                          "state quality.higher_is_better",
                          printable(first->label), printable(group.metric),
                          printable(group.metric)));
  }

  void admit(const Group& group, Entry& entry) const {
    Point p = points_[entry.point];
    if (group.better) p.quality.higher_is_better = *group.better == Better::higher;
    for (const rules::Objection& one : rules::check(p)) {
      const bool aside = std::ranges::find(question_.despite, one.rule) != question_.despite.end();
      if (one.severity != Severity::error || aside) continue;
      entry.entrance = Entrance::unsound;
      entry.why = fmt::format("{} [{}]", one.message, one.rule);
      return;
    }
    if (group.axes.empty()) {
      entry.entrance = Entrance::incomplete;
      entry.why = "neither its energy, quality, latency nor rate is known";
      return;
    }
    for (const Axis axis : group.axes)
      if (!entry.at(axis)) return lack(entry, axis);
    if (question_.quality_at_least) {
      if (!entry.at(Axis::quality)) return lack(entry, Axis::quality);
      keep(entry, *entry.at(Axis::quality), *question_.quality_at_least,
           group.better.value_or(Better::higher), "its quality");
    }
    if (question_.latency_at_most) {
      if (!entry.at(Axis::latency)) return lack(entry, Axis::latency);
      keep(entry, *entry.at(Axis::latency), *question_.latency_at_most, Better::lower,
           "its latency");
    }
  }

  static void lack(Entry& entry, Axis axis) {
    entry.entrance = Entrance::incomplete;
    entry.why = fmt::format("its {} is not known", name(axis));
  }

  static void keep(Entry& entry, const Interval& value, double limit, Better better,
                   std::string_view what) {
    const auto how = against(better, value, Interval::exact(limit));
    if (how == Against::surely_better || how == Against::surely_no_worse) return;
    if (entry.entrance == Entrance::outside) return;
    entry.entrance = how == Against::maybe ? Entrance::at_limit : Entrance::outside;
    entry.why =
        fmt::format("{} {} {} the limit of {}", what, rules::said(Fact(value.value)),
                    how == Against::maybe ? "is too near to" : "breaks", rules::said(Fact(limit)));
  }

  static void hold_against_each_other(Group& group) {
    std::vector<std::size_t> placed;
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < group.entries.size(); ++i) {
      if (group.entries[i].entrance != Entrance::placed) continue;
      placed.push_back(i);
      candidates.emplace_back();
      for (const Axis axis : group.axes) candidates.back().push_back(*group.entries[i].at(axis));
    }
    const std::vector<Placement> result = place(group.directions(), candidates);
    double bound = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < placed.size(); ++k) {
      Entry& entry = group.entries[placed[k]];
      entry.placement.standing = result[k].standing;
      for (const std::size_t j : result[k].by) entry.placement.by.push_back(placed[j]);
      if (entry.at(Axis::energy)) bound = std::min(bound, entry.at(Axis::energy)->high);
    }
    for (const std::size_t i : placed)
      if (const auto& energy = group.entries[i].at(Axis::energy);
          energy && energy->low <= bound &&
          group.entries[i].placement.standing != Standing::dominated)
        group.least.push_back(i);
  }

  void tell(Group& group) const {
    const auto any = [&](auto&& of) {
      return std::ranges::any_of(group.entries, [&](const Entry& e) {
        return e.entrance == Entrance::placed && of(e, points_[e.point]);
      });
    };
    if (std::ranges::find(group.axes, Axis::quality) == group.axes.end())
      group.notes.push_back("quality is no axis here: what needs less energy may be worse");
    else if (any([](const Entry&, const Point& p) { return !p.quality.uncertainty; }))
      group.notes.push_back("quality is taken as stated where quality.uncertainty is not known");
    if (any([](const Entry& e, const Point&) {
          return e.at(Axis::energy) && !e.at(Axis::energy)->bounded();
        }))
      group.notes.push_back(
          "how far the energy of some may be off is not known, so nothing is decided by it: state "
          "meter.uncertainty, or meter.serial and meter.range where one meter measured all");
    if (group.one_meter && any([](const Entry&, const Point&) { return true; }))
      group.notes.push_back(
          "one meter in one range measured all, so its own error cancels and is in no interval "
          "here");
    if (any([](const Entry& e, const Point&) { return e.assumed; }))
      group.notes.push_back(
          "where runs were not repeated, they are taken to differ by 1 % (3 % below 100 W, or at "
          "an unknown power)");
    if (any([](const Entry&, const Point& p) {
          return p.work.model.empty() || p.work.dataset.empty();
        }))
      group.notes.push_back(
          "model or data set of some is not known: that all do the same work is taken on trust");
    if (any([](const Entry&, const Point& p) { return p.boundary.kind.empty(); }))
      group.notes.push_back(
          "the boundary of some is not known: that all were measured at one is taken on trust");
  }

  Points points_;
  const Question& question_;
};

// What --better says of a metric is asked for, and is no mistake of somebody's.
Status check_directions(Points points, const Question& question) {
  for (const auto& [metric, way] : question.directions) {
    if (std::ranges::none_of(points, [&](const Point& p) { return p.quality.metric == metric; }))
      return fail(ExitCode::usage,
                  fmt::format("--better {}: no measurement has this metric", printable(metric)));
    const auto known = rules::known_direction(metric);
    if (known && *known != way)
      return fail(ExitCode::usage,
                  fmt::format("--better {}: by what it is, {} is better", printable(metric),
                              *known == Better::higher ? "higher" : "lower"));
  }
  return {};
}

}  // namespace

std::string_view name(Axis axis) {
  switch (axis) {
    case Axis::energy: return "energy";
    case Axis::quality: return "quality";
    case Axis::latency: return "latency";
    case Axis::rate: return "rate";
  }
  return "?";
}

std::optional<Axis> axis_of(std::string_view text) {
  const auto found = std::ranges::find(kAllAxes, text, [](Axis axis) { return name(axis); });
  if (found == kAllAxes.end()) return {};
  return *found;
}

std::vector<Better> Group::directions() const {
  std::vector<Better> list;
  list.reserve(axes.size());
  for (const Axis axis : axes)
    list.push_back(axis == Axis::quality ? better.value_or(Better::higher)
                   : axis == Axis::rate  ? Better::higher
                                         : Better::lower);
  return list;
}

std::string unit_of(const Group& group, Points points) {
  return common(points, group, [](const Point& p) { return p.work.unit; });
}

std::string describe(const Group& group, Points points) {
  std::string text;
  const auto add = [&](const std::string& what) {
    if (!what.empty()) text += (text.empty() ? "" : ", ") + what;
  };
  add(unit_of(group, points));
  add(common(points, group, [](const Point& p) { return p.work.model; }));
  add(common(points, group, [](const Point& p) { return p.work.dataset; }));
  add(common(points, group, [](const Point& p) { return p.scenario.arrival; }));
  add(common(points, group, [](const Point& p) { return p.boundary.kind; }));
  return text.empty() ? "unknown work" : text;
}

Result<Frontier> frontier(Points points, const Question& question) {
  JD_TRY(check_directions(points, question));
  const Builder builder(points, question);
  Frontier result;
  std::set<std::string> metrics;
  for (const auto& members : groups(points, question.despite)) {
    JD_ASSIGN(Group group, builder.build(members));
    if (!group.metric.empty()) metrics.insert(group.metric);
    result.groups.push_back(std::move(group));
  }
  if (question.quality_at_least && metrics.size() > 1)
    return fail(ExitCode::usage,
                fmt::format("--quality-at-least: the points have several metrics ({}, {}{}); give "
                            "those of one metric",
                            printable(*metrics.begin()), printable(*std::next(metrics.begin())),
                            metrics.size() > 2 ? ", ..." : ""));
  std::ranges::sort(result.groups, [&](const Group& x, const Group& y) {
    const auto key = [&](const Group& g) {
      return std::tuple(describe(g, points), g.metric, points[g.entries.front().point].label);
    };
    return key(x) < key(y);
  });
  return result;
}

}  // namespace joulediff::frontier
