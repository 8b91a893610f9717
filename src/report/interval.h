// Values between their bounds, for people and for programs.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "rules/worth.h"

namespace joulediff::report {

// "500 mJ ±1.2 %"; "500 mJ ±?" where how far it may be off is not known; "unknown".
std::string with_unit(const std::optional<rules::Interval>& value, std::string_view unit);

// "29 % (28 % to 31 %)" of a ratio; "29 % ±?"; "unknown".
std::string share(const std::optional<rules::Interval>& ratio);

// {value, low, high}, bounds that are not known null; null.
nlohmann::ordered_json to_json(const std::optional<rules::Interval>& value);

nlohmann::ordered_json text_or_null(const std::string& text);
nlohmann::ordered_json number_or_null(const run::Fact& fact);

}  // namespace joulediff::report
