#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "report/facility.h"
#include "report/facility_parts.h"

namespace joulediff::report {

namespace {

using facility::Range;

// A spreadsheet takes a cell that begins so for a formula; ours are text.
std::string cell(std::string_view text) {
  std::string out = printable(text);
  if (!out.empty() && std::string_view("=+-@").find(out.front()) != std::string_view::npos)
    out = "'" + out;
  if (out.find_first_of(",\"\r\n") == std::string::npos) return out;
  std::string quoted = "\"";
  for (const char c : out) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string number(double value) {
  return std::isnan(value) ? "" : fmt::format("{:.10g}", value);  // unknown is empty
}

class Rows {
 public:
  void add(std::string_view section, std::string_view alternative, std::string_view item,
           const Range& range, bool ranged, std::string_view unit, std::string_view boundary,
           std::string_view standing, std::string_view from = "") {
    out_ += fmt::format("{},{},{},{},{},{},{},{},{},{}\r\n", cell(section), cell(alternative),
                        cell(item), number(range.base), ranged ? number(range.low) : "",
                        ranged ? number(range.high) : "", cell(unit), cell(boundary),
                        cell(standing), cell(from));
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_ = "section,alternative,item,base,low,high,unit,boundary,standing,from\r\n";
};

Range one(double value) {
  return {value, value, value};
}

}  // namespace

std::string facility_csv(const facility::Study& study) {
  const facility::Plan& plan = study.plan;
  const std::string_view modelled = name(Standing::modelled);
  Rows rows;
  for (const facility::Input& input : plan.inputs)
    rows.add("input", "", input.key, input.range, input.ranged, input.unit, "",
             name(input.standing), input.origin);
  for (std::size_t a = 0; a < study.subjects.size(); ++a) {
    const facility::Alternative& alternative = plan.alternatives[a];
    rows.add("device", alternative.name, "joules_per_unit", study.subjects[a].device, true,
             "J/" + plan.service.unit, name(alternative.boundary),
             name(study.subjects[a].device_standing), alternative.meter);
  }
  const auto& all = facility::measures();
  for (std::size_t a = 0; a < study.subjects.size(); ++a)
    for (std::size_t m = 0; m < all.size(); ++m)
      rows.add("year", plan.alternatives[a].name, all[m].key, study.subjects[a].values[m], true,
               unit_of(all[m], plan), all[m].boundary ? name(*all[m].boundary) : "", modelled);
  for (const facility::Pair& pair : study.pairs) {
    const std::string& best = plan.alternatives[pair.best].name;
    const std::string& other = plan.alternatives[pair.other].name;
    const std::string against = fmt::format("{} against {}", best, other);
    rows.add("difference", against, std::string(facility::name(plan.aim)), pair.difference, true,
             "ratio", "facility", modelled);
    for (const facility::Swing& swing : pair.tornado)
      rows.add("tornado", against, plan.inputs[swing.input.index()].key,
               {swing.at_low, pair.difference.base, swing.at_high}, true, "ratio", "facility",
               modelled);
    for (const facility::BreakEven& turn : pair.break_even) {
      const facility::Input& input = plan.inputs[turn.input.index()];
      rows.add("break_even", against, input.key, one(turn.value), false, input.unit, "", modelled,
               turn.within_range ? "within its range" : "");
    }
  }
  for (std::size_t a = 0; a < study.demand.energy.size(); ++a)
    rows.add("growth", plan.alternatives[a].name, "site_energy", study.demand.energy[a], true, "J",
             "facility", modelled);
  for (std::size_t i = 0; i < study.pairs.size(); ++i)
    rows.add("rebound",
             fmt::format("{} against {}", plan.alternatives[study.pairs[i].best].name,
                         plan.alternatives[study.pairs[i].other].name),
             "taken_back", study.rebound[i].taken_back, true, aim_unit(plan), "facility", modelled);
  return rows.take();
}

}  // namespace joulediff::report
