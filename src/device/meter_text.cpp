#include "device/meter_text.h"

#include <charconv>
#include <cmath>

namespace joulediff::device {
namespace {

constexpr double kMostWatts = 1e9;
constexpr double kLargestSeconds = 1e11;  // the year 5138

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\"";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<Nanoseconds> unix_time(std::string_view text, Nanoseconds unit) {
  const auto time = number(text);
  if (!time || *time <= 0) return std::nullopt;
  auto of_one = static_cast<double>(unit == 0 ? 1'000'000'000 : unit);
  while (unit == 0 && *time * of_one >= kLargestSeconds * 1e9 && of_one > 1) of_one /= 1e3;
  if (*time * of_one >= kLargestSeconds * 1e9) return std::nullopt;
  // Whole and broken seconds apart, since a double does not hold nanoseconds of our time.
  const double whole = std::floor(*time);
  return static_cast<Nanoseconds>(whole) * static_cast<Nanoseconds>(of_one) +
         std::llround((*time - whole) * of_one);
}

std::optional<std::int64_t> power(std::string_view text, double unit) {
  const auto value = number(text);
  if (!value || *value < 0 || *value * unit > kMostWatts) return std::nullopt;
  return std::llround(*value * unit * 1e3);
}

}  // namespace joulediff::device
