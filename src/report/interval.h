// Values between their bounds, for people and for programs.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "rules/worth.h"

namespace joulediff::report {

// "44.5 ±1.2 %": how far a value that is written already may be off.
std::string with_error(std::string text, const rules::Interval& value);

// "500 mJ ±1.2 %"; "500 mJ ±?" where how far it may be off is not known; "unknown".
std::string with_unit(const std::optional<rules::Interval>& value, std::string_view unit);

// "29 % (28 % to 31 %)" of a ratio; "29 % ±?"; "unknown".
std::string share(const std::optional<rules::Interval>& ratio);

// {value, low, high}, bounds that are not known null; null.
nlohmann::ordered_json to_json(const std::optional<rules::Interval>& value);

nlohmann::ordered_json text_or_null(const std::string& text);
nlohmann::ordered_json number_or_null(const run::Fact& fact);

}  // namespace joulediff::report
