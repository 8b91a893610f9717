#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/facility.h"
#include "report/facility_parts.h"
#include "report/prose.h"

namespace joulediff::report {

namespace {

constexpr int kBar = 25;  // columns to each side of 0

// Where the difference goes, as "      ▒▒▒▒│███": low side and high side of one input, 0 in the
// middle.
std::string bar(const facility::Swing& swing, double scale) {
  const auto column = [&](double value) {
    return static_cast<int>(std::lround(std::clamp(value / scale, -1.0, 1.0) * kBar));
  };
  const int from = column(std::min(swing.at_low, swing.at_high));
  const int to = column(std::max(swing.at_low, swing.at_high));
  std::string out;
  for (int at = -kBar; at <= kBar; ++at) out += at == 0 ? "│" : at >= from && at <= to ? "█" : " ";
  return out;
}

std::string bars(const facility::Study& study, const facility::Pair& pair) {
  double scale = 0;
  for (const facility::Swing& swing : pair.tornado)
    scale = std::max({scale, std::fabs(swing.at_low), std::fabs(swing.at_high)});
  TextTable table({{"", Align::left, 16, Cut::begin},
                   {fmt::format("{:^{}}", "0", 2 * kBar + 1), Align::left, 2 * kBar + 1, Cut::end}},
                  kWidth);
  for (const facility::Swing& swing : pair.tornado)
    table.add({study.plan.inputs[swing.input.index()].key, bar(swing, scale)});
  return table.text("  ");
}

}  // namespace

std::string facility_text(const facility::Study& study) {
  std::string out;
  for (const Part& part : facility_parts(study)) {
    out += (out.empty() ? "" : "\n") + truncated(part.title, kWidth) + "\n";
    for (const std::string& sentence : part.before) out += entry("", sentence, 0);
    if (part.tornado != nullptr) out += bars(study, *part.tornado);
    for (const PartTable& one : part.tables) {
      TextTable table(one.columns, kWidth);
      for (const auto& row : one.rows) table.add(row);
      out += table.text("  ");
    }
    for (const std::string& sentence : part.after) out += entry("", sentence, 0);
  }
  return out;
}

}  // namespace joulediff::report
