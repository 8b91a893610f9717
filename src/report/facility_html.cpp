// The page of a facility study: one file, no script, nothing fetched (which its policy forbids
// too), light or dark as the reader's system is. What comes from outside is escaped, all of it,
// here.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "report/facility.h"
#include "report/facility_parts.h"
#include "report/prose.h"

namespace joulediff::report {

namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{0}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1d2327; --paper: #ffffff; --soft: #5b6670; --rule: #d5dade;
  --low: #b45309; --high: #1d4ed8; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e4e8eb; --paper: #14181b; --soft: #9aa5ae;
  --rule: #343c42; --low: #f0a04b; --high: #7ba5f7; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.15rem; margin: 2rem 0 .3rem; }}
p {{ margin: .3rem 0; color: var(--soft); max-width: 48rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0; }}
th, td {{ text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; font-weight: normal; }}
thead th {{ color: var(--soft); }} .r {{ text-align: right; }}
svg {{ max-width: 100%; height: auto; }} svg text {{ font: 13px system-ui, sans-serif; fill: var(--ink); }}
svg .soft {{ fill: var(--soft); }} .low {{ fill: var(--low); }} .high {{ fill: var(--high); }}
.axis {{ stroke: var(--ink); }} .base {{ stroke: var(--soft); stroke-dasharray: 3 3; }}
@media print {{ body {{ margin: 0; max-width: none; }} h2 {{ break-after: avoid; }} }}
</style>
</head>
<body>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string table(const PartTable& one) {
  std::string out = "<div class=\"wide\"><table>\n";
  const auto cells = [&](const char* tag, auto text_of) {
    out += "<tr>";
    for (std::size_t c = 0; c < one.columns.size(); ++c) {
      // The first cell of a row is its heading.
      const std::string_view name = c == 0 ? "th" : tag;
      out += fmt::format("<{}{}{}>{}</{}>", name, c == 0 && tag[1] == 'd' ? " scope=\"row\"" : "",
                         one.columns[c].align == Align::right ? " class=\"r\"" : "",
                         escaped(text_of(c)), name);
    }
    out += "</tr>\n";
  };
  const bool titled = std::any_of(one.columns.begin(), one.columns.end(),
                                  [](const TextColumn& column) { return !column.title.empty(); });
  if (titled) {
    out += "<thead>";
    cells("th", [&](std::size_t c) { return one.columns[c].title; });
    out += "</thead>\n";
  }
  out += "<tbody>\n";
  for (const auto& row : one.rows)
    cells("td", [&](std::size_t c) { return c < row.size() ? row[c] : std::string(); });
  return out + "</tbody></table></div>\n";
}

// One bar an input, from the difference at its low to that at its high; 0, where the two
// alternatives are equal, is a line, and so is the base.
std::string drawing(const facility::Study& study, const facility::Pair& pair) {
  constexpr double kLabels = 230, kWide = 520, kSide = 70, kRow = 26, kTop = 30;
  double low = std::min(0.0, pair.difference.base);
  double high = std::max(0.0, pair.difference.base);
  for (const facility::Swing& swing : pair.tornado) {
    low = std::min({low, swing.at_low, swing.at_high});
    high = std::max({high, swing.at_low, swing.at_high});
  }
  const double span = high > low ? high - low : 1;
  const auto x = [&](double value) { return kLabels + kSide + (value - low) / span * kWide; };
  const double bottom = kTop + kRow * static_cast<double>(pair.tornado.size());
  const double width = kLabels + kWide + 2 * kSide;
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" role=\"img\" aria-label=\"What the "
      "difference rests on; the table below has the numbers\">\n",
      width, bottom + 10, width);
  const auto line = [&](const char* kind, double at) {
    return fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.0f}\" y2=\"{:.0f}\"/>\n", kind,
        x(at), x(at), kTop - 6, bottom + 4);
  };
  const auto text = [](double at, double y, const char* anchor, const char* kind,
                       const std::string& says) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", at, y,
        anchor, kind, escaped(says));
  };
  double y = kTop;
  for (const facility::Swing& swing : pair.tornado) {
    const facility::Input& input = study.plan.inputs[swing.input.index()];
    out += text(kLabels - 8, y + 17, "end", "name", truncated(input.key, 30, Cut::begin));
    const auto half = [&](double to, const char* kind) {
      const double from = x(pair.difference.base);
      return fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.0f}\"/>\n",
          kind, std::min(from, x(to)), y + 4, std::fabs(x(to) - from), kRow - 8);
    };
    // The shorter half lies on top, where both are on one side of the base.
    const double base = pair.difference.base;
    const bool low_longer = std::fabs(swing.at_low - base) >= std::fabs(swing.at_high - base);
    out += low_longer ? half(swing.at_low, "low") + half(swing.at_high, "high")
                      : half(swing.at_high, "high") + half(swing.at_low, "low");
    const bool low_left = swing.at_low <= swing.at_high;
    out += text(x(std::min({swing.at_low, swing.at_high, base})) - 5, y + 17, "end", "soft",
                input_value(low_left ? input.range.low : input.range.high, input));
    out += text(x(std::max({swing.at_low, swing.at_high, base})) + 5, y + 17, "start", "soft",
                input_value(low_left ? input.range.high : input.range.low, input));
    y += kRow;
  }
  out += line("base", pair.difference.base) + line("axis", 0);
  out += text(x(0), 16, "middle", "soft", "equal");
  if (std::fabs(x(pair.difference.base) - x(0)) > 70)
    out += text(x(pair.difference.base), 16, "middle", "soft", with_sign(pair.difference.base));
  return out + "</svg>\n<p>Orange: the input at its low; blue: at its high.</p>\n";
}

}  // namespace

std::string facility_html(const facility::Study& study) {
  const std::vector<Part> parts = facility_parts(study);
  std::string out = fmt::format(kHead, escaped(parts.front().title));
  bool first = true;
  for (const Part& part : parts) {
    out += fmt::format("<{0}>{1}</{0}>\n", first ? "h1" : "h2", escaped(part.title));
    first = false;
    for (const std::string& sentence : part.before)
      out += fmt::format("<p>{}</p>\n", escaped(sentence));
    if (part.tornado != nullptr) out += drawing(study, *part.tornado);
    for (const PartTable& one : part.tables) out += table(one);
    for (const std::string& sentence : part.after)
      out += fmt::format("<p>{}</p>\n", escaped(sentence));
  }
  return out + "</body>\n</html>\n";
}

}  // namespace joulediff::report
