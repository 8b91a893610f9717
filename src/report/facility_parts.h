// What the text and the page of a facility study say, part by part; each prints it its own way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/text_table.h"
#include "facility/study.h"

namespace joulediff::report {

struct PartTable {
  std::vector<TextColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Part {
  std::string title;
  std::vector<std::string> before;  // sentences above the tables
  std::vector<PartTable> tables;
  std::vector<std::string> after;
  const facility::Pair* tornado = nullptr;  // to be drawn
};

std::vector<Part> facility_parts(const facility::Study& study);

// "1.23 GWh (1.10 to 1.40)": a year's energy in Wh, carbon in g or t.
std::string facility_value(double value, std::string_view unit, const facility::Plan& plan);
std::string facility_range(const facility::Range& range, std::string_view unit,
                           const facility::Plan& plan);

// An input's value with its unit: "66.7 W".
std::string input_value(double value, const facility::Input& input);

// The unit of a measure with the plan's own words in it: "J/request", "EUR".
std::string unit_of(const facility::Measure& measure, const facility::Plan& plan);

// The unit of what ranks: "J", "EUR", "g".
std::string aim_unit(const facility::Plan& plan);

}  // namespace joulediff::report
