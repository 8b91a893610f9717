#include "report/interval.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace joulediff::report {

using Json = nlohmann::ordered_json;
using rules::Interval;

std::string with_error(std::string text, const Interval& value) {
  if (!value.bounded()) return text + " ±?";
  const double half = std::max(value.high - value.value, value.value - value.low);
  if (half > 0 && value.value != 0)
    text += fmt::format(" ±{}", format_percent(half / std::abs(value.value)));
  return text;
}

std::string with_unit(const std::optional<Interval>& value, std::string_view unit) {
  return value ? with_error(format_quantity(value->value, unit), *value) : "unknown";
}

std::string share(const std::optional<Interval>& ratio) {
  if (!ratio) return "unknown";
  const std::string text = format_percent(ratio->value);
  if (!ratio->bounded()) return text + " ±?";
  return fmt::format("{} ({} to {})", text, format_percent(ratio->low),
                     format_percent(ratio->high));
}

Json to_json(const std::optional<Interval>& value) {
  if (!value) return nullptr;
  return {{"value", number_or_null(value->value)},
          {"low", number_or_null(value->low)},
          {"high", number_or_null(value->high)}};
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json number_or_null(const run::Fact& fact) {
  return fact && std::isfinite(*fact) ? Json(*fact) : Json(nullptr);
}

}  // namespace joulediff::report
