// A plot of at most 100 columns. The axis upwards is the first of quality, latency and rate on
// which the placed points differ; it is drawn so that better is above, as less energy is to the
// left: the frontier runs from the lower left to the upper right, and what lies below and right of
// it is dominated (as far as these two axes tell).
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/format.h"
#include "report/frontier.h"

namespace joulediff::report {
namespace {

using frontier::Axis;
using frontier::Better;
using frontier::Entry;
using frontier::Group;

constexpr std::size_t kColumns = 72;
constexpr std::size_t kRows = 12;
constexpr std::ptrdiff_t kCrowd = 60;  // of more, what is dominated is left out

struct Scale {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool varies() const { return high > low && std::isfinite(high - low); }
  // Where the largest is several times the smallest, ratios are what one wants to see.
  bool logarithmic() const { return low > 0 && high > 4 * low; }
  std::size_t cell(double value, std::size_t cells) const {
    const double part = logarithmic()
                            ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low))
                            : (value - low) / (high - low);
    return static_cast<std::size_t>(std::lround(part * static_cast<double>(cells - 1)));
  }
};

Scale scale_of(const Group& group, Axis axis) {
  Scale scale;
  for (const Entry& entry : group.entries)
    if (entry.entrance == frontier::Entrance::placed && entry.at(axis))
      scale.add(entry.at(axis)->value);
  return scale;
}

char glyph(std::size_t index, const Entry& entry) {
  const bool best = entry.placement.standing == frontier::Standing::best;
  if (index < 26) return static_cast<char>((best ? 'A' : 'a') + static_cast<char>(index));
  return best ? 'O' : 'o';
}

std::string axis_value(Axis axis, double value) {
  switch (axis) {
    case Axis::quality: return fmt::format("{:.4g}", value);
    case Axis::latency: return format(Seconds(value));
    default: return format_quantity(value, "/s");
  }
}

}  // namespace

std::string mark(std::size_t entry) {
  return entry < 26 ? std::string(1, static_cast<char>('A' + static_cast<char>(entry)))
                    : std::to_string(entry + 1);
}

std::string plot(const Group& group) {
  const Scale energy = scale_of(group, Axis::energy);
  const auto up = std::ranges::find_if(group.axes, [&](Axis axis) {
    return axis != Axis::energy && scale_of(group, axis).varies();
  });
  const auto placed = std::ranges::count_if(
      group.entries, [](const Entry& e) { return e.entrance == frontier::Entrance::placed; });
  if (!energy.varies() || up == group.axes.end() || placed < 3) return "";
  const Scale scale = scale_of(group, *up);
  const bool higher =
      group.directions()[static_cast<std::size_t>(up - group.axes.begin())] == Better::higher;

  std::vector<std::string> rows(kRows, std::string(kColumns, ' '));
  const bool crowded = placed > kCrowd;
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    const Entry& entry = group.entries[i];
    if (entry.entrance != frontier::Entrance::placed || !entry.at(Axis::energy) ||
        (crowded && entry.placement.standing == frontier::Standing::dominated))
      continue;
    const std::size_t y = scale.cell(entry.at(*up)->value, kRows);
    char& cell =
        rows[higher ? kRows - 1 - y : y][energy.cell(entry.at(Axis::energy)->value, kColumns)];
    cell = cell == ' ' ? glyph(i, entry) : '*';
  }

  const std::string top = axis_value(*up, higher ? scale.high : scale.low);
  const std::string bottom = axis_value(*up, higher ? scale.low : scale.high);
  const std::size_t margin = std::max(width_of(top), width_of(bottom));
  const auto label = [&](const std::string& text) {
    return "  " + std::string(margin - width_of(text), ' ') + text;
  };
  std::string out = fmt::format(
      "  {} (better above) against energy (less to the left{}); capitals are best, * several\n",
      *up == Axis::quality && !group.metric.empty() ? printable(group.metric)
                                                    : std::string(frontier::name(*up)),
      energy.logarithmic() ? ", in ratios" : "");
  for (std::size_t y = 0; y < kRows; ++y) {
    std::string line = label(y == 0 ? top : y == kRows - 1 ? bottom : "") + " |" + rows[y];
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  const std::string left = format(Joules(energy.low)), right = format(Joules(energy.high));
  out += label("") + " +" + std::string(kColumns, '-') + "\n" + label("") + "  " + left +
         std::string(kColumns - std::min(kColumns, width_of(left) + width_of(right)), ' ') + right +
         "\n";
  return out;
}

}  // namespace joulediff::report
