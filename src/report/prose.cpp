#include "report/prose.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "diagnose/place.h"

namespace joulediff::report {

std::string entry(std::string_view label, std::string_view text, std::size_t label_width) {
  const std::string indent(2 + label_width, ' ');
  std::string out = fmt::format("  {:<{}}", label, label_width);
  std::size_t column = indent.size();
  bool first = true;
  const std::string clean = printable(text);
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::size_t width = width_of(word);
    if (!first && column + 1 + width > kWidth) {
      out += "\n" + indent;
      column = indent.size();
      first = true;
    }
    if (!first) {
      out += ' ';
      ++column;
    }
    first = false;
    const std::string shown = truncated(word, kWidth - indent.size(), Cut::begin);
    out += shown;
    column += width_of(shown);
  }
  return out + "\n";
}

std::string percent(double ratio) {
  if (!std::isfinite(ratio)) return "unbounded";
  const double tenths = std::round(1000 * ratio);
  return fmt::format("{:.1f} %", tenths == 0 ? 0.0 : tenths / 10);  // never "-0.0 %"
}

std::string with_sign(double ratio) {
  return (ratio >= 0.0005 ? "+" : "") + percent(ratio);
}

std::string with_interval(const diagnose::Difference& d) {
  return fmt::format("{} ({} to {})", with_sign(d.value), with_sign(d.low), with_sign(d.high));
}

std::string with_interval(const Energy& energy) {
  return fmt::format("{} ({} to {})", format(energy.joules), format(energy.low),
                     format(energy.high));
}

// From the package on; a path in the user's own tree stays whole.
std::string line_of(const diagnose::Place& place) {
  return fmt::format("{}:{}", diagnose::within_packages(place.file), place.line);
}

std::string text(const diagnose::Place& place) {
  return line_of(place) + (place.function.empty() ? "" : " in " + place.function);
}

}  // namespace joulediff::report
