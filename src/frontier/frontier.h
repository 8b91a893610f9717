// Energy, quality, latency and rate of many measurements of one work, as one curve: what costs
// least for what it gives, and what is dominated. A pure function of points, so that whoever makes
// points (a person, a run, a sweep) has the curve of them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontier/pareto.h"
#include "run/point.h"

namespace joulediff::frontier {

// energy: joules a unit of work. quality: the metric's value. latency: seconds at the scenario's
// percentile. rate: units of work a second.
enum class Axis { energy, quality, latency, rate };
inline constexpr std::size_t kAxes = 4;
inline constexpr std::array kAllAxes{Axis::energy, Axis::quality, Axis::latency, Axis::rate};
std::string_view name(Axis axis);
std::optional<Axis> axis_of(std::string_view name);

struct Question {
  std::vector<Axis> by;                      // empty: all that a group of points knows anything of
  std::map<std::string, Better> directions;  // of metrics; before what is known of them
  run::Fact quality_at_least;                // "at least as good as": below, where lower is better
  run::Fact latency_at_most;                 // seconds
  std::vector<std::string> despite;          // rules whose errors keep no point apart
};

// Where a point stands before it is held against the others.
enum class Entrance {
  placed,      // among the others
  unsound,     // a rule of the grammar objects to it alone
  incomplete,  // it does not know one of the axes, or what a limit is on
  outside,     // it breaks a limit
  at_limit     // whether it keeps the limits lies within its intervals
};

struct Entry {
  std::size_t point = 0;                                   // as given
  std::array<std::optional<rules::Interval>, kAxes> on{};  // none: not known
  bool assumed = false;  // not repeated: its energy varies as other programs' do
  Entrance entrance = Entrance::placed;
  std::string why;        // not placed: what keeps it out
  Placement placement{};  // placed; `by` are indices of Group::entries
  const std::optional<rules::Interval>& at(Axis axis) const {
    return on[static_cast<std::size_t>(axis)];
  }
};

// Points of one work, boundary, load and metric, as far as the grammar can tell.
struct Group {
  std::vector<Entry> entries;  // least energy first; not known: last
  std::vector<Axis> axes;      // on which the placed ones were held against each other
  std::string metric;
  std::optional<Better> better;    // of quality
  bool one_meter = false;          // whose own error is in no interval: it cancels
  std::vector<std::size_t> least;  // placed ones of the least energy, as far as intervals tell
  std::vector<std::string> notes;
  std::vector<Better> directions() const;  // of `axes`
};

struct Frontier {
  std::vector<Group> groups;  // in the order of their descriptions
};

std::string unit_of(const Group& group, std::span<const run::Point> points);  // empty: unknown

// "token, llama2-70b, orca, node-ac, offline": what the points of a group have in common.
std::string describe(const Group& group, std::span<const run::Point> points);

// A metric whose direction is not known, directions that contradict one another, and a limit of
// quality over several metrics are mistakes.
Result<Frontier> frontier(std::span<const run::Point> points, const Question& question = {});

}  // namespace joulediff::frontier
