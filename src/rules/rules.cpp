#include "rules/rules.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "meter/meter.h"
#include "rules/grammar.h"
#include "rules/inputs.h"
#include "rules/run_point.h"

namespace joulediff::rules {
namespace {

using Finding = std::optional<Diagnostic>;

Diagnostic finding(Severity severity, std::string rule, std::string message) {
  return {severity, std::move(rule), std::move(message)};
}

Finding work_unit(const run::Run& a, const run::Run& b) {
  const run::Work &x = a.manifest.work, &y = b.manifest.work;
  if (x.unit == y.unit) return {};
  return finding(Severity::error, "rules.work_unit",
                 fmt::format("a counts its work in {}s, b in {}s; state the same unit for both "
                             "(record --work UNIT=COUNT)",
                             x.unit, y.unit));
}

Finding work_count(const run::Run& a, const run::Run& b) {
  const run::Work &x = a.manifest.work, &y = b.manifest.work;
  if (x.unit != y.unit || x.per_step == y.per_step) return {};
  return finding(Severity::error, "rules.work_count",
                 fmt::format("a step of a does {:g} {}s, one of b {:g}; give both the same batch",
                             x.per_step, x.unit, y.per_step));
}

// A fact that both state and state differently; one that is not stated is not known to differ.
Finding quality(const run::Run& a, const run::Run& b) {
  const auto x = a.manifest.facts.find("quality"), y = b.manifest.facts.find("quality");
  if (x == a.manifest.facts.end() || y == b.manifest.facts.end() || x->second == y->second)
    return {};
  return finding(Severity::error, "rules.quality",
                 fmt::format("the quality of a is {}, of b {}; compare programs that reach the "
                             "same quality",
                             x->second, y->second));
}

Finding operators(const run::Run& a, const run::Run& b) {
  if (!a.operators.empty() && !b.operators.empty()) return {};
  return finding(Severity::error, "rules.no_operators",
                 fmt::format("{} has no operators: its values pass saw none. Check --region and "
                             "that the framework's plug-in was loaded (joulediff doctor)",
                             a.operators.empty() ? "a" : "b"));
}

Finding energy(const run::Run& a, const run::Run& b) {
  for (const auto& [run, side] : {std::pair(&a, "a"), std::pair(&b, "b")})
    if (const auto meter = meter::choose_meter(*run); !meter)
      return finding(Severity::error, "rules.no_energy",
                     fmt::format("{} has no energy: {}", side, meter.error().message));
  return {};
}

Finding boundary(const run::Run& a, const run::Run& b) {
  const auto x = meter::choose_meter(a), y = meter::choose_meter(b);
  if (!x || !y || x->boundary == y->boundary) return {};
  return finding(Severity::error, "rules.boundary",
                 fmt::format("a was measured at the {} ({}), b at the {} ({}); record both with "
                             "the same meter",
                             name(x->boundary), x->name, name(y->boundary), y->name));
}

Finding meters(const run::Run& a, const run::Run& b) {
  const auto x = meter::choose_meter(a), y = meter::choose_meter(b);
  if (!x || !y || x->boundary != y->boundary || x->source == y->source) return {};
  return finding(Severity::error, "rules.meter",
                 fmt::format("a was read with the {}, b with the {}, whose systematic errors do "
                             "not cancel; record both with the same meter",
                             x->name, y->name));
}

Finding device(const run::Run& a, const run::Run& b) {
  const std::string &x = a.manifest.device, &y = b.manifest.device;
  if (x.empty() || y.empty() || x == y) return {};
  return finding(Severity::error, "rules.device",
                 fmt::format("a ran on {}, b on {}; record both on the same device", x, y));
}

Finding board(const run::Run& a, const run::Run& b) {
  const std::string &x = a.manifest.device_uuid, &y = b.manifest.device_uuid;
  if (x.empty() || y.empty() || x == y || a.manifest.device != b.manifest.device) return {};
  return finding(Severity::warning, "rules.board",
                 fmt::format("a ran on board {}, b on {}: the systematic errors of two boards (5 % "
                             "each) do not cancel; record both on one board",
                             x, y));
}

bool apart(const run::Run& a, const run::Run& b) {
  return a.manifest.pair.empty() || a.manifest.pair != b.manifest.pair;
}

Finding recorded_apart(const run::Run& a, const run::Run& b) {
  if (!apart(a, b)) return {};
  return finding(Severity::warning, "rules.recorded_apart",
                 "the runs were recorded apart, so drifts of temperature and clocks count as "
                 "differences; record them interleaved (record --pair A.jd B.jd -- CMD_A --- "
                 "CMD_B)");
}

Finding one_after_the_other(const run::Run& a, const run::Run& b) {
  if (apart(a, b) || a.blocks.empty() || b.blocks.empty()) return {};
  const auto [first_a, last_a] = std::ranges::minmax_element(a.blocks, {}, &run::Block::order);
  const auto [first_b, last_b] = std::ranges::minmax_element(b.blocks, {}, &run::Block::order);
  if (last_a->order >= first_b->order && last_b->order >= first_a->order) return {};
  return finding(Severity::warning, "rules.not_interleaved",
                 "all blocks of one run were recorded before those of the other, so that a drift "
                 "counts as a difference; record the pair anew with a larger --budget");
}

Finding noise_floor(const run::Run& a, const run::Run& b) {
  if (a.blocks.size() >= 2 && b.blocks.size() >= 2) return {};
  return finding(Severity::warning, "rules.no_floor",
                 fmt::format("a has {} block(s) and b {}: without two of each there is no A/A "
                             "floor, and every verdict is undecided; record more blocks",
                             a.blocks.size(), b.blocks.size()));
}

Finding failed(const run::Run& a, const run::Run& b) {
  for (const auto& [run, side] : {std::pair(&a, "a"), std::pair(&b, "b")})
    for (const run::Block& block : run->blocks)
      if (block.exit_status != 0)
        return finding(Severity::warning, "rules.failed",
                       fmt::format("a process of {} ended with status {}; what it had recorded is "
                                   "used. Compare runs that finish",
                                   side, block.exit_status));
  return {};
}

Finding framework(const run::Run& a, const run::Run& b) {
  const std::string &x = a.manifest.framework, &y = b.manifest.framework;
  if (x == y) return {};
  return finding(Severity::note, "rules.framework",
                 fmt::format("a runs on {}, b on {}", x.empty() ? "an unknown framework" : x,
                             y.empty() ? "an unknown framework" : y));
}

// What the grammar of measurements objects to beyond the rules above, which know more of recorded
// runs: their values, their blocks, their framework.
Diagnostics by_grammar(const run::Run& a, const run::Run& b) {
  run::Point x = point_of(a), y = point_of(b);
  x.software.framework = y.software.framework = "";
  x.work.unit = y.work.unit = "";
  // "rules.quality" holds the words of the fact `quality` against one another.
  const auto stated = [](const run::Manifest& m) { return m.facts.contains("quality"); };
  if (stated(a.manifest) && stated(b.manifest)) x.quality.metric = y.quality.metric;
  Diagnostics list;
  for (const Objection& one : check(x, y)) {
    constexpr std::string_view kKnownHere[] = {"BO1", "ST1", "ST2", "ST3", "ST4", "DI3"};
    if (std::ranges::find(kKnownHere, one.rule) != std::end(kKnownHere)) continue;
    const char* whom = one.whom == Whom::a ? "a: " : one.whom == Whom::b ? "b: " : "";
    list.push_back(
        finding(one.severity, one.rule, fmt::format("{}{}; {}", whom, one.message, one.remedy)));
  }
  return list;
}

}  // namespace

Verdict comparable(const run::Run& a, const run::Run& b) {
  Verdict verdict;
  verdict.recorded_apart = apart(a, b);
  for (const auto rule :
       {work_unit, work_count, quality, operators, energy, boundary, meters, device, inputs,
        weights, board, recorded_apart, one_after_the_other, noise_floor, failed, framework})
    if (Finding found = rule(a, b)) verdict.reasons.push_back(std::move(*found));
  for (Diagnostic& found : by_grammar(a, b)) verdict.reasons.push_back(std::move(found));
  verdict.ok = std::ranges::none_of(
      verdict.reasons, [](const Diagnostic& reason) { return reason.severity == Severity::error; });
  return verdict;
}

}  // namespace joulediff::rules
