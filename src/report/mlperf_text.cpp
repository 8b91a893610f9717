#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text_table.h"
#include "report/facts.h"
#include "report/mlperf.h"
#include "report/mlperf_population.h"
#include "report/prose.h"

namespace joulediff::report {
namespace {

using rules::Checked;
using rules::MlperfCheck;
using rules::Objection;
using rules::Score;

// Digits enough to hold it against a published figure.
std::string exact(const std::optional<double>& value) {
  return value ? fmt::format("{:.9g}", *value) : "unknown";
}
template <class Quantity>
std::string exact(const std::optional<Quantity>& quantity) {
  return quantity ? fmt::format("{:.9g}", quantity->value) : "unknown";
}

std::string off(double official, double ours) {
  if (!(ours != 0)) return "unknown";
  const double relative = official / ours - 1;
  if (std::abs(relative) < 5e-9) return "0 %";
  return (relative > 0 ? "+" : "") + format_percent(relative);
}

std::string title_of(const MlperfEntry& entry) {
  const run::Submission& s = entry.submission;
  constexpr const char* kKinds[] = {"inference", "training", "tiny"};
  std::string out = kKinds[static_cast<std::size_t>(s.kind)];
  const auto add = [&](std::string_view words, const std::string& text) {
    if (!text.empty()) out += fmt::format("{}{}", words, text);
  };
  add(", ", s.benchmark);
  add(" ", s.scenario);
  add(" on ", s.system);
  add(", by ", s.submitter);
  add(", ", s.round);
  return out;
}

std::string energy(const Score& score) {
  if (!score.official_joules && !score.trapezoid)
    return "  No energy is known: see below what is missing.\n";
  TextTable table({{"", Align::left, 12, Cut::end},
                   {"official rule", Align::right, 8, Cut::end},
                   {"integral", Align::right, 8, Cut::end},
                   {"official is", Align::right, 8, Cut::end}},
                  kWidth);
  if (score.official || score.ours)
    table.add({score.metric, exact(score.official), exact(score.ours),
               score.official && score.ours ? off(*score.official, *score.ours) : "unknown"});
  if (score.official_joules && score.trapezoid && score.metric != "J to train")
    table.add({"J in the window", exact(score.official_joules), exact(score.trapezoid),
               off(score.official_joules->value, score.trapezoid->value)});
  if (score.bridged)
    table.add({"  unusable readings bridged", "", exact(score.bridged),
               off(score.official_joules->value, score.bridged->value)});
  if (score.official_watts && score.joules() && score.window && score.metric != "J to train") {
    const Watts ours = *score.joules() / *score.window;
    table.add({"W", exact(score.official_watts), exact(std::optional(ours)),
               off(score.official_watts->value, ours.value)});
  }
  if (const auto joules = score.joules_per_unit();
      joules && score.metric != "J to train" && score.official_joules)
    table.add({"J/" + score.unit, exact(std::optional(score.official_joules->value / *score.units)),
               exact(joules), off(score.official_joules->value, score.joules()->value)});
  std::string out = table.text("  ");
  if (score.metric == "uJ/inference" && score.official)
    out += "  uJ/inference is the median of the windows, J/inference the mean over all of them.\n";
  if (score.published && score.official)
    out += fmt::format("  The submission's own files say {}; the rule on its trace is {} off.\n",
                       exact(score.published), off(*score.official, *score.published));
  for (const rules::Part& part : score.parts) {
    if (!score.trapezoid || std::abs(part.joules / *score.trapezoid) < 1e-7) continue;
    out += entry(
        "", fmt::format("{:+.3g} % of it: {}.", 100 * (part.joules / *score.trapezoid), part.what),
        0);
  }
  return out;
}

std::string windows(const Score& score, std::size_t top) {
  if (score.windows.size() < 2) return {};
  TextTable table({{"  ", Align::left, 12, Cut::begin},
                   {"seconds", Align::right, 8, Cut::end},
                   {"official J", Align::right, 8, Cut::end},
                   {"integral J", Align::right, 8, Cut::end},
                   {"official is", Align::right, 8, Cut::end}},
                  kWidth);
  for (std::size_t i = 0; i < std::min(top, score.windows.size()); ++i) {
    const rules::MlperfWindow& w = score.windows[i];
    table.add({w.name, fmt::format("{:.3f}", w.seconds.value), exact(w.official),
               exact(w.trapezoid),
               w.official && w.trapezoid ? off(w.official->value, w.trapezoid->value) : "unknown"});
  }
  const std::size_t left = score.windows.size() - std::min(top, score.windows.size());
  return table.text("  ") + (left > 0 ? fmt::format("  and {} more (--top)\n", left) : "");
}

std::string verdict(const MlperfEntry& entry) {
  const rules::MlperfJudgement& j = entry.judgement;
  return fmt::format("  Official checker: {}. Joulediff: {}.\n", rules::name(j.official),
                     rules::name(j.ours));
}

std::string checks(const MlperfEntry& one) {
  std::string out;
  std::size_t fine = 0;
  for (const MlperfCheck& check : one.judgement.checks) {
    if (check.ours == Checked::passed && check.official != Checked::failed &&
        check.official != Checked::warned) {
      ++fine;
      continue;
    }
    std::string words = check.message;
    if (!check.remedy.empty()) words += "; " + check.remedy;
    if (!check.why.empty()) words += fmt::format(". Differs: {}", check.why);
    out += entry(fmt::format("{:<4} {:<4}", rules::name(check.official), rules::name(check.ours)),
                 fmt::format("{} [{}]", words, check.id), 10);
  }
  const std::string head =
      fmt::format("\n  Checks: {} of {} without a remark{}\n", fine, one.judgement.checks.size(),
                  out.empty() ? "" : "; of the others, the official checker's verdict and ours");
  return head + out;
}

std::string objections(const MlperfEntry& one) {
  if (one.judgement.objections.empty()) return {};
  std::string out = "\n  The measurement\n";
  for (const Objection& objection : one.judgement.objections)
    out +=
        entry(name(objection.severity),
              fmt::format("{}; {} [{}]", objection.message, objection.remedy, objection.rule), 10);
  return out;
}

std::string files(const MlperfEntry& one) {
  if (one.submission.diagnostics.empty()) return {};
  std::string out = "\n  The files\n";
  for (const Diagnostic& d : one.submission.diagnostics)
    out += entry(
        name(d.severity),
        fmt::format("{}{} [{}]", d.message,
                    d.count > 1 ? fmt::format(" ({} times)", format_count(d.count)) : "", d.rule),
        10);
  return out;
}

// The checks and rules that made our verdict worse than the official one, or better.
std::string reasons(const MlperfEntry& one) {
  const rules::MlperfJudgement& j = one.judgement;
  std::string out;
  const auto add = [&out](const std::string& id) { out += (out.empty() ? "" : ", ") + id; };
  for (const MlperfCheck& check : j.checks)
    if (check.ours == j.ours && check.official != check.ours && check.ours != Checked::passed)
      add(check.id);
  const Severity severity = j.ours == Checked::failed ? Severity::error : Severity::warning;
  if (j.ours != Checked::passed) {
    for (const Objection& objection : j.objections)
      if (objection.severity == severity) add(objection.rule);
    for (const Diagnostic& diagnostic : one.submission.diagnostics)
      if (diagnostic.severity == severity) add(diagnostic.rule);
  }
  return out;
}

std::string disagreements(const MlperfPage& page) {
  std::string out;
  for (const MlperfEntry& one : page.entries) {
    const rules::MlperfJudgement& j = one.judgement;
    if (j.official == j.ours) continue;
    out += entry("",
                 fmt::format("{}: {} -> {} by {}", table_name(one), rules::name(j.official),
                             rules::name(j.ours), reasons(one)),
                 0);
  }
  return out.empty() ? out
                     : "\nWhere our verdict is not the official one, and by which rules\n" + out;
}

std::string all_of(const MlperfPage& page) {
  TextTable table({{"submission", Align::left, 20, Cut::end},
                   {"metric", Align::left, 8, Cut::end},
                   {"official", Align::right, 8, Cut::end},
                   {"integral", Align::right, 8, Cut::end},
                   {"official is", Align::right, 8, Cut::end},
                   {"checker", Align::left, 7, Cut::end},
                   {"ours", Align::left, 4, Cut::end}},
                  kWidth);
  for (const MlperfEntry& one : page.entries) {
    const Score& score = one.judgement.score;
    const auto six = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.6g}", *value) : std::string("unknown");
    };
    table.add({table_name(one), score.metric, six(score.official), six(score.ours),
               score.official && score.ours ? off(*score.official, *score.ours) : "unknown",
               std::string(rules::name(one.judgement.official)),
               std::string(rules::name(one.judgement.ours))});
  }
  return "\nAll submissions\n" + table.text("  ") + disagreements(page);
}

std::string tasks(const MlperfPage& page) {
  TextTable table({{"task", Align::left, 12, Cut::end},
                   {"unit", Align::left, 8, Cut::end},
                   {"count", Align::right, 5, Cut::end},
                   {"least", Align::right, 8, Cut::end},
                   {"median", Align::right, 8, Cut::end},
                   {"most", Align::right, 8, Cut::end}},
                  kWidth);
  for (const TaskRow& row : by_task(page))
    table.add({row.task, row.unit, format_count(row.count), format(Joules(row.least)),
               format(Joules(row.median)), format(Joules(row.most))});
  return "\nEnergy of a unit of work, by task\n" + table.text("  ");
}

std::string qualities(const MlperfPage& page) {
  const std::vector<QualityRow> rows = cost_of_quality(page);
  if (rows.empty()) return {};
  std::string out = "\nThe cost of quality: 99.9 % against 99 % on one system\n";
  for (std::size_t i = 0; i < std::min(page.top, rows.size()); ++i) {
    const QualityRow& row = rows[i];
    out += entry(
        "",
        fmt::format("{}: {} more energy per {} ({:.3f} of the efficiency){}", short_name(*row.high),
                    format_percent(1 / row.efficiency - 1), row.high->judgement.score.unit,
                    row.efficiency, row.same_log ? "; both rest on the same log [SC3]" : ""),
        0);
  }
  return out;
}

std::string curve_of(const MlperfPage& page) {
  const FrontierPage curved = curves(page);
  if (curved.frontier.groups.empty()) return {};
  return "\nEnergy, speed and quality: what is dominated by what\n\n" + text(curved);
}

std::string changed(const MlperfPage& page) {
  const std::vector<ChangeRow> rows = changes(page);
  if (rows.empty()) return {};
  std::string out = "\nWhere only one thing changed\n";
  for (std::size_t i = 0; i < std::min(page.top, rows.size()); ++i) {
    const ChangeRow& row = rows[i];
    const bool neither = row.what == "neither";
    out += entry("",
                 fmt::format("{} -> {}: {} J per {}; {}{}", short_name(*row.a), short_name(*row.b),
                             with_sign(row.change), row.a->judgement.score.unit,
                             neither ? "by their descriptions hardware and software are the same"
                                     : "only the " + row.what + " differs",
                             row.detail.empty() ? "" : ", " + row.detail),
                 0);
  }
  if (rows.size() > page.top)
    out += fmt::format("  and {} pairs more (--top)\n", rows.size() - page.top);
  return out;
}

std::string verdicts(const MlperfPage& page) {
  TextTable table({{"check", Align::left, 12, Cut::end},
                   {"official pass", Align::right, 4, Cut::end},
                   {"warn", Align::right, 4, Cut::end},
                   {"FAIL", Align::right, 4, Cut::end},
                   {"ours pass", Align::right, 4, Cut::end},
                   {"warn", Align::right, 4, Cut::end},
                   {"FAIL", Align::right, 4, Cut::end}},
                  kWidth);
  std::string why;
  for (const CheckRow& row : by_check(page)) {
    const bool official = row.official[0] + row.official[1] + row.official[2] > 0;
    const auto cell = [&](std::size_t n) { return official ? std::to_string(n) : "-"; };
    table.add({row.id, cell(row.official[0]), cell(row.official[1]), cell(row.official[2]),
               std::to_string(row.ours[0]), std::to_string(row.ours[1]),
               std::to_string(row.ours[2])});
    for (const std::string& one : row.why) why += entry("", row.id + ": " + one, 0);
  }
  std::string out = "\nVerdicts by check\n" + table.text("  ");
  if (!why.empty()) out += "  Where the two differ on a check that both have:\n" + why;
  return out;
}

std::string one_by_one(const MlperfEntry& one, std::size_t top) {
  return fmt::format("{}\n  {}\n", printable(short_name(one)), printable(title_of(one))) +
         energy(one.judgement.score) + windows(one.judgement.score, top) + verdict(one) +
         checks(one) + objections(one) + files(one);
}

// Said once, and not of each submission.
std::string footnote(const MlperfPage& page) {
  for (const MlperfEntry& one : page.entries)
    for (const MlperfCheck& check : one.judgement.checks)
      if (check.id == "mlperf.client_sources" && check.official == Checked::unchecked)
        return "\nThe tools' sources were not held against their releases: give --sources FILE.\n";
  return {};
}

}  // namespace

std::string text(const MlperfPage& page) {
  std::string out;
  const std::size_t told = std::min(page.top, page.entries.size());
  for (std::size_t i = 0; i < told; ++i)
    out += (i > 0 ? "\n" : "") + one_by_one(page.entries[i], page.top);
  if (page.entries.size() < 2) return out + footnote(page);
  if (told < page.entries.size())
    out += fmt::format("\nAnd {} more in the tables below (--top tells more of them one by one).\n",
                       page.entries.size() - told);
  return out + all_of(page) + tasks(page) + qualities(page) + curve_of(page) + changed(page) +
         verdicts(page) + footnote(page);
}

}  // namespace joulediff::report
