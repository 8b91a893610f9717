#include "report/frontier_json.h"

#include <nlohmann/json.hpp>

#include "report/interval.h"

namespace joulediff::report {
namespace {

using Json = nlohmann::ordered_json;
using frontier::Axis;
using frontier::Better;
using frontier::Entrance;
using frontier::Entry;
using frontier::Group;
using frontier::Standing;

const char* word(const Entry& entry) {
  switch (entry.entrance) {
    case Entrance::unsound: return "unsound";
    case Entrance::incomplete: return "incomplete";
    case Entrance::outside: return "outside";
    case Entrance::at_limit: return "at_limit";
    case Entrance::placed: break;
  }
  switch (entry.placement.standing) {
    case Standing::best: return "best";
    case Standing::undecided: return "undecided";
    case Standing::dominated: return "dominated";
  }
  return "?";
}

// Points are named by their place on the command line: labels need not differ.
Json entry_json(const FrontierPage& page, const Group& group, const Entry& entry) {
  const run::Point& p = page.points[entry.point];
  Json by = Json::array();
  for (const std::size_t i : entry.placement.by) by.push_back(group.entries[i].point);
  return {{"point", entry.point},
          {"label", text_or_null(p.label)},
          {"result", word(entry)},
          {"by", std::move(by)},
          {"why", text_or_null(entry.why)},
          {"joules_per_unit", to_json(entry.at(Axis::energy))},
          {"quality", to_json(entry.at(Axis::quality))},
          {"latency", to_json(entry.at(Axis::latency))},
          {"percentile", number_or_null(p.scenario.slo_percentile)},
          {"rate", to_json(entry.at(Axis::rate))},
          {"standing", rules::standing_of(p)},
          {"boundary", text_or_null(p.boundary.kind)},
          {"meter", text_or_null(p.meter.name)},
          {"device", text_or_null(p.hardware.device)},
          {"batch", number_or_null(p.scenario.batch)},
          {"concurrency", number_or_null(p.scenario.concurrency)},
          {"precision", p.quality.precision}};
}

Json group_json(const FrontierPage& page, const Group& group) {
  Json axes = Json::array();
  for (const Axis axis : group.axes) axes.push_back(frontier::name(axis));
  Json entries = Json::array();
  for (const Entry& entry : group.entries) entries.push_back(entry_json(page, group, entry));
  Json least = Json::array();
  for (const std::size_t i : group.least) least.push_back(group.entries[i].point);
  const char* better = group.better == Better::lower ? "lower" : "higher";
  return {{"what", frontier::describe(group, page.points)},
          {"unit", text_or_null(frontier::unit_of(group, page.points))},
          {"axes", std::move(axes)},
          {"metric", text_or_null(group.metric)},
          {"better", group.better ? Json(better) : Json(nullptr)},
          {"one_meter", group.one_meter},
          {"points", std::move(entries)},
          {"least", std::move(least)},
          {"notes", group.notes}};
}

}  // namespace

Json groups_json(const FrontierPage& page) {
  Json groups = Json::array();
  for (const Group& group : page.frontier.groups) groups.push_back(group_json(page, group));
  return groups;
}

std::string json(const FrontierPage& page) {
  Json all{{"schema", "joulediff.frontier/1"},
           {"quality_at_least", number_or_null(page.question.quality_at_least)},
           {"latency_at_most", number_or_null(page.question.latency_at_most)},
           {"despite", page.question.despite},
           {"groups", groups_json(page)}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace joulediff::report
