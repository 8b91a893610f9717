#include "rules/grammar.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/grammar_rules.h"

namespace joulediff::rules {
namespace {

constexpr std::array kGrammar{
    Rule{"WU1", "work unit", nullptr, work_unit},
    Rule{"WU2", "completed work", completed_work, nullptr},
    Rule{"WU3", "conversion of units", token_conversion, nullptr},
    Rule{"Q1", "quality", quality_reached, quality_equal},
    Rule{"Q2", "precision", nullptr, precision},
    Rule{"Q3", "one build", one_build, nullptr},
    Rule{"SC1", "scenario", nullptr, scenario_equal},
    Rule{"SC2", "latency limit", slo_met, nullptr},
    Rule{"SC3", "independence", inferred, copied},
    Rule{"TW1", "window from markers", window_from_markers, nullptr},
    Rule{"TW2", "overhang of the log", overhang, nullptr},
    Rule{"TW3", "coverage", coverage, nullptr},
    Rule{"TW4", "duration", duration, nullptr},
    Rule{"TW5", "phases", nullptr, phases_equal},
    Rule{"SA1", "rate of readings", rate, nullptr},
    Rule{"SA2", "gaps", gaps, nullptr},
    Rule{"SA3", "invalid readings", invalid_readings, nullptr},
    Rule{"SA4", "integrator", integrator, nullptr},
    Rule{"SA5", "refresh of the sensor", sensor_refresh, nullptr},
    Rule{"SY1", "clocks", clock_skew, nullptr},
    Rule{"SY2", "cost of skew", skew_cost, nullptr},
    Rule{"SY3", "alignment", alignment, nullptr},
    Rule{"BO1", "boundary", nullptr, boundary_equal},
    Rule{"BO2", "components", nullptr, components_equal},
    Rule{"BO3", "estimated part", estimated_part, nullptr},
    Rule{"BO4", "conversion factor", conversion, nullptr},
    Rule{"BO5", "nodes", nodes, nullptr},
    Rule{"BO6", "several meters", meters_summed, nullptr},
    Rule{"EN1", "possible energy", possible_energy, nullptr},
    Rule{"EN2", "energy of the repeats", energy_of_repeats, nullptr},
    Rule{"ME1", "uncertainty", uncertainty, nullptr},
    Rule{"ME2", "calibration", calibration, nullptr},
    Rule{"ME3", "range", range, nullptr},
    Rule{"ME4", "reference run", reference_run, nullptr},
    Rule{"ME5", "proxy", proxy, nullptr},
    Rule{"ID1", "idle power", nullptr, idle_equal},
    Rule{"ID2", "share of idle", idle_share, nullptr},
    Rule{"CL1", "control", nullptr, control_equal},
    Rule{"CL2", "drift of clocks", drift, nullptr},
    Rule{"TH1", "warm-up", warm_up, temperature_equal},
    Rule{"SW1", "software", nullptr, software_equal},
    Rule{"ST1", "repeats", repeats, nullptr},
    Rule{"ST2", "interval", nullptr, interval},
    Rule{"ST3", "budget of errors", nullptr, budget},
    Rule{"ST4", "noise floor", nullptr, noise_floor_without_repeats},
    Rule{"ST5", "trimming", trimming, trimming_equal},
    Rule{"ST6", "same runs", same_runs, nullptr},
    Rule{"DI1", "mandatory fields", mandatory_fields, nullptr},
    Rule{"DI2", "integrity", integrity, nullptr},
    Rule{"DI3", "label", label, nullptr},
    Rule{"F1", "PUE", pue, pue_equal},
    Rule{"F2", "utilisation", facility_utilisation, nullptr},
    Rule{"F3", "capacity", capacity, nullptr},
    Rule{"F4", "price", price, nullptr},
    Rule{"F5", "carbon", carbon, carbon_equal},
    Rule{"F6", "embodied carbon", embodied, nullptr},
    Rule{"F7", "sensitivity", sensitivity, nullptr},
    Rule{"F8", "rebound", rebound, nullptr},
};

void add(std::vector<Objection>& list, const Rule& rule, Whom whom, Objected objection) {
  if (!objection) return;
  objection->rule = rule.id;
  objection->whom = whom;
  list.push_back(std::move(*objection));
}

}  // namespace

std::span<const Rule> grammar() {
  return kGrammar;
}

std::vector<Objection> check(const run::Point& point) {
  std::vector<Objection> list;
  for (const Rule& rule : kGrammar)
    if (rule.one != nullptr) add(list, rule, Whom::a, rule.one(point));
  return list;
}

std::vector<Objection> check(const run::Point& a, const run::Point& b) {
  std::vector<Objection> list;
  for (const Rule& rule : kGrammar) {
    if (rule.one != nullptr) {
      add(list, rule, Whom::a, rule.one(a));
      add(list, rule, Whom::b, rule.one(b));
    }
    if (rule.pair != nullptr) add(list, rule, Whom::both, rule.pair(a, b));
  }
  return list;
}

bool refuses(std::span<const Objection> objections) {
  return std::ranges::any_of(objections,
                             [](const Objection& one) { return one.severity == Severity::error; });
}

bool differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}
bool differ(const Fact& a, const Fact& b) {
  return a && b && std::abs(*a - *b) > 1e-9 * std::max(std::abs(*a), std::abs(*b));
}
bool differ(const Flag& a, const Flag& b) {
  return a && b && *a != *b;
}
bool differ(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() || b.empty()) return false;
  std::vector<std::string> x = a, y = b;
  std::ranges::sort(x);
  std::ranges::sort(y);
  return x != y;
}

std::string said(const std::string& text) {
  return text.empty() ? "unknown" : text;
}
// Counts to the last one, as far as a double has it.
std::string said(const Fact& fact) {
  if (!fact) return "unknown";
  const bool count = *fact == std::trunc(*fact) && std::abs(*fact) < 1e15;
  return count ? fmt::format("{:.0f}", *fact) : fmt::format("{:.6g}", *fact);
}
std::string said(const Flag& flag) {
  return !flag ? "unknown" : *flag ? "yes" : "no";
}
std::string said(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : "+") + one;
  return said(text);
}

Fact load_watts(const Point& p) {
  if (!p.energy.joules || !p.window.seconds || !(*p.window.seconds > 0)) return {};
  return *p.energy.joules / *p.window.seconds;
}

Fact relative_change(const Point& a, const Point& b) {
  const Fact x = a.per_unit(), y = b.per_unit();
  if (!x || !y || !(std::max(*x, *y) > 0) || differ(a.work.unit, b.work.unit)) return {};
  return (*y - *x) / std::max(*x, *y);
}

}  // namespace joulediff::rules
